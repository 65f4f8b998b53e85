"""Charts: numbers in, Plotly figures out; pure functions that know no page, model or run.

Arguments by model are mappings with some of `MODELS` as keys: what is absent is not drawn. Each
`draw` returns a `Chart`. The record of a run is turned into arguments in `record.py`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

MODELS = ("original", "unlearned", "gold")
"""The order of everything that is drawn, left to right."""

Row = dict[str, Any]
"""One row of a chart's table twin: column (with its unit) to value."""


@dataclass(frozen=True, eq=False)
class Chart:
    """A figure with all that must be said beside it."""

    figure: go.Figure
    title: str
    """What to see, computed from the data; empty where nothing can be said. Plain text."""
    alt: str
    """The picture in words. Plain text."""
    table: list[Row]
    """What is drawn, row by row."""


@dataclass(frozen=True)
class LegendItem:
    """One entry of a legend that several figures share."""

    name: str
    """Plain text: escape it for HTML."""
    colour: str
    symbol: str
    """Plotly's name of the marker."""
    ringed: bool = False


def present(*by_model: Mapping[str, Any]) -> list[str]:
    """The models that all mappings have, in the one order."""
    return [m for m in MODELS if all(m in mapping for mapping in by_model)]
