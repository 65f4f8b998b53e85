"""Panels: what charts of several panels share: places, titles, bands, keys to the models."""

from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from app.charts.theme import DASHES, NAMES, SYMBOLS, Theme, faded

Values = Sequence[float | None]


def grid(rows: int, columns: int, **spacing: Any) -> go.Figure:
    """A figure of panels, at least one."""
    return make_subplots(max(1, rows), max(1, columns), **spacing)


def place(figure: go.Figure, row: int, column: int) -> tuple[str, str]:
    """Plotly's names of a panel's axes, such as `("x2", "y2")`."""
    panel: Any = figure.get_subplot(row, column)
    x, y = (axis.plotly_name.replace("axis", "") for axis in panel)
    return x, y


def upright(figure: go.Figure, at: float, cell: tuple[int, int], line: dict[str, Any]) -> None:
    """A vertical line through a panel."""
    x, y = place(figure, *cell)
    figure.add_shape(type="line", xref=x, yref=f"{y} domain", x0=at, x1=at, y0=0, y1=1, line=line)


def level(figure: go.Figure, at: float, cell: tuple[int, int], line: dict[str, Any]) -> None:
    """A horizontal line through a panel, below its marks."""
    x, y = place(figure, *cell)
    spot = {"xref": f"{x} domain", "yref": y, "x0": 0, "x1": 1, "y0": at, "y1": at}
    figure.add_shape(type="line", layer="below", line=line, **spot)


def head(figure: go.Figure, text: str, colour: str, row: int, column: int) -> None:
    """Write `text`, already escaped, above the left end of a panel."""
    x, y = place(figure, row, column)
    figure.add_annotation(
        text=text, font={"size": 13, "color": colour}, showarrow=False,
        xref=f"{x} domain", yref=f"{y} domain", x=0, y=1, xanchor="left", yanchor="bottom",
        yshift=3,
    )  # fmt: skip


def line(model: str, theme: Theme) -> dict[str, Any]:
    """A model's line: its colour, and its dash."""
    return {"color": theme.mark(model), "width": 2.2, "dash": DASHES[model]}


def dot(model: str, theme: Theme, size: int = 9) -> dict[str, Any]:
    """A model's mark: its colour, and its shape, outlined."""
    edge = {"color": theme.edge(model), "width": 2 if model == "original" else 1}
    return {"symbol": SYMBOLS[model], "size": size, "color": theme.mark(model), "line": edge}


def key(figure: go.Figure, models: Sequence[str], theme: Theme, kind: str = "lines") -> None:
    """One legend entry a model, in the one order, whatever the panels hold."""
    for model in models:
        figure.add_trace(
            go.Scatter(
                x=[None], y=[None], mode=kind, name=NAMES[model], showlegend=True,
                line=line(model, theme), marker=dot(model, theme),
            )
        )  # fmt: skip


def runs(lows: Values, highs: Values) -> list[list[int]]:
    """Positions at which both ends are known, in unbroken runs."""
    found: list[list[int]] = [[]]
    for i, ends in enumerate(zip(lows, highs, strict=True)):
        if None not in ends:
            found[-1].append(i)
        elif found[-1]:
            found.append([])
    return [run for run in found if run]


def bands(xs: Sequence[Any], lows: Values, highs: Values, model: str, theme: Theme) -> list[Any]:
    """Filled bands over the runs of `xs`; a lonely place gets a bar."""
    traces = []
    for run in runs(lows, highs):
        there, back = [xs[i] for i in run], [xs[i] for i in reversed(run)]
        ends = [highs[i] for i in run] + [lows[i] for i in reversed(run)]
        lonely = len(run) == 1
        traces.append(
            go.Scatter(
                x=there + back,
                y=ends,
                mode="lines",
                fill=None if lonely else "toself",
                fillcolor=faded(theme.mark(model), 0.2),
                line={"width": 6 if lonely else 0, "color": faded(theme.mark(model), 0.35)},
                hoverinfo="skip",
                showlegend=False,
            )
        )
    return traces
