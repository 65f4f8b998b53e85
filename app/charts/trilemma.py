"""Trilemma: what methods still say, what they still know, and what they have lost, beside gold."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from app.charts import Chart, Row
from app.charts.panels import grid, head, place
from app.charts.table import table
from app.charts.text import amount, change, listed, safe, short
from app.charts.theme import Theme, dressed, faded

HEIGHT = 430
LABELLED = 12
"""Most marks whose names are written beside them; all show theirs under the pointer."""

SPREAD = 2.0
FINE = 0.06
"""Length of an axis, as a fraction, below which its percentages have a decimal."""

Axis = tuple[float, float, float]
"""Value, and the ends of what is known of it."""
Range = tuple[float, float]


@dataclass(frozen=True)
class Mark:
    """One method: what it says (forget accuracy), keeps (retained accuracy) and knows (gap of the
    strongest attack to gold), all in fractions.
    """

    name: str
    """By which a click is recognised."""
    title: str
    verdict: str
    says: Axis
    keeps: Axis
    knows: Axis
    control: bool = False
    best: bool = False
    """No other method is as good on all three and better on one."""


@dataclass(frozen=True)
class Gold:
    """Where the golds lie on the three axes."""

    says: Range
    keeps: Range
    knows: Range


def draw(marks: Sequence[Mark], gold: Gold | None, theme: Theme, *, attack: str) -> Chart:
    """Two panels with one upright axis: what is known against what is said, and against what is
    kept. `attack` names the attack behind what is known, for the axis.
    """
    figure = grid(1, 2, shared_yaxes=True, horizontal_spacing=0.04)
    written = set(sorted((m.name for m in marks if m.best), key=str)[:LABELLED])
    for column, side in ((1, "says"), (2, "keeps")):
        if gold is not None:
            _box(figure, getattr(gold, side), gold.knows, column, theme, named=column == 1)
        for group in ("other", "control", "best"):
            chosen = sorted((m for m in marks if _group(m) == group), key=lambda m: m.knows[0])
            if chosen:
                trace = _points(chosen, side, group, written, theme, named=column == 1)
                figure.add_trace(trace, row=1, col=column)
        words = {
            "says": "Forget accuracy: what it says",
            "keeps": "Retained accuracy: what it keeps",
        }
        ends, left = window(*_spots(marks, gold, side))
        digits = 0 if ends[1] - ends[0] > FINE else 1
        figure.update_xaxes(
            tickformat=f".{digits}%", title=words[side], range=ends, row=1, col=column
        )
        arrow = {"says": "← forgets in words", "keeps": "keeps more →"}[side]
        more = f" · {left} outside" if left else ""
        head(figure, arrow + more, theme.muted, 1, column)
    ends, _ = window(*_spots(marks, gold, "knows"))
    figure.update_yaxes(tickformat="+.0%", nticks=7, range=ends)
    figure.update_yaxes(title=f"{attack}, gap to gold: what it knows", row=1, col=1)
    dressed(figure, theme, HEIGHT, margin={"t": 64}, legend={"y": 1.1}, clickmode="event+select")
    title = headline(marks, gold)
    alt = (
        f"Two scatter plots of {len(marks)} methods, with the range of gold as a box: {attack} gap"
        f" to gold against forget accuracy, and against retained accuracy. {title}."
    )
    return Chart(figure, title, alt, twin(marks, gold))


def _spots(marks: Sequence[Mark], gold: Gold | None, side: str) -> tuple[list[float], list[float]]:
    """Where the marks are on an axis, and what must be seen: gold, and what nothing beats."""
    values = [getattr(m, side)[0] for m in marks]
    must = [getattr(m, side)[0] for m in marks if m.best]
    return values, must + (list(getattr(gold, side)) if gold else [])


def window(values: Sequence[float], must: Sequence[float]) -> tuple[Range, int]:
    """Ends of an axis on which most can be told apart, and how many values are left outside.

    All of `must` are inside, and what lies within SPREAD times the middle half around it.
    """
    ordered = sorted(values)
    low, high = ordered[len(ordered) // 4], ordered[(3 * len(ordered)) // 4]
    reach = max(SPREAD * (high - low), 0.05)
    near = [v for v in values if low - reach <= v <= high + reach] + list(must)
    first, last = min(near), max(near)
    pad = max(0.08 * (last - first), 0.01)
    return (first - pad, last + pad), sum(not first <= v <= last for v in values)


def _group(mark: Mark) -> str:
    return "control" if mark.control else "best" if mark.best else "other"


def _beside(place: int) -> str:
    """Names of marks that lie close together go to different sides."""
    return ("middle right", "middle left", "top center", "bottom center")[place % 4]


NAMES = {
    "best": "not beaten on all three (Pareto front)",
    "other": "other methods",
    "control": "controls",
}


def _points(
    marks: Sequence[Mark],
    side: str,
    group: str,
    written: set[str],
    theme: Theme,
    *,
    named: bool,
) -> go.Scatter:
    orange = theme.mark("unlearned")
    looks: dict[str, dict[str, Any]] = {
        "best": {"symbol": "circle", "size": 11, "color": orange},
        "other": {"symbol": "circle", "size": 8, "color": faded(orange, 0.45)},
        "control": {"symbol": "x", "size": 9, "color": theme.muted},
    }
    edge = {"color": theme.edge("unlearned") if group == "best" else theme.muted, "width": 1}
    across = [getattr(m, side) for m in marks]
    return go.Scatter(
        x=[a[0] for a in across],
        y=[m.knows[0] for m in marks],
        error_x=_bars(across, theme),
        error_y=_bars([m.knows for m in marks], theme),
        mode="markers+text",
        marker={**looks[group], "line": edge},
        text=[safe(short(m.title, 22)) if m.name in written else "" for m in marks],
        textposition=[_beside(i) for i in range(len(marks))],
        textfont={"size": 11, "color": theme.ink},
        customdata=[[m.name] for m in marks],
        hovertext=[_told(m) for m in marks],
        hovertemplate="%{hovertext}<extra></extra>",
        name=NAMES[group],
        legendgroup=group,
        showlegend=named,
    )


def _bars(axes: Sequence[Axis], theme: Theme) -> dict[str, Any]:
    return {
        "type": "data",
        "symmetric": False,
        "array": [max(0.0, high - value) for value, _, high in axes],
        "arrayminus": [max(0.0, value - low) for value, low, _ in axes],
        "thickness": 1,
        "width": 0,
        "color": faded(theme.edge("unlearned"), 0.5),
    }


def _told(mark: Mark) -> str:
    lines = [
        f"<b>{safe(mark.title)}</b>" + (f" {safe(mark.verdict)}" if mark.verdict else ""),
        f"forget accuracy {amount(mark.says[0], 'fraction')}",
        f"retained accuracy {amount(mark.keeps[0], 'fraction')}",
        f"attack, gap to gold {change(mark.knows[0], 'fraction')}",
        "click to open",
    ]
    return "<br>".join(lines)


def _box(
    figure: go.Figure, across: Range, upright: Range, column: int, theme: Theme, *, named: bool
) -> None:
    """The golds' range; padded to be seen where they agree."""
    x, y = place(figure, 1, column)
    (x0, x1), (y0, y1) = (_padded(*ends) for ends in (across, upright))
    colour = theme.mark("gold")
    figure.add_shape(
        type="rect", xref=x, yref=y, x0=x0, x1=x1, y0=y0, y1=y1, layer="below",
        fillcolor=faded(colour, 0.22), line={"color": theme.edge("gold"), "width": 1.5},
    )  # fmt: skip
    figure.add_trace(
        go.Scatter(
            x=[(x0 + x1) / 2], y=[(y0 + y1) / 2], mode="markers", name="gold's seeds",
            marker={"symbol": "square", "size": 12, "color": faded(colour, 0.5),
                    "line": {"color": theme.edge("gold"), "width": 1.5}},
            visible="legendonly" if not named else True, showlegend=named, hoverinfo="skip",
            opacity=1 if named else 0,
        ),
        row=1, col=column,
    )  # fmt: skip


LEAST = 0.006
"""Least width of the box, as a fraction: a range of nothing would be no picture."""


def _padded(low: float, high: float) -> Range:
    spare = max(0.0, LEAST - (high - low)) / 2
    return low - spare, high + spare


def inside(mark: Mark, gold: Gold) -> bool:
    """Whether the intervals of a mark reach into gold's box on all three axes."""
    pairs = ((mark.says, gold.says), (mark.keeps, gold.keeps), (mark.knows, gold.knows))
    return all(low <= top and high >= bottom for (_, low, high), (bottom, top) in pairs)


def headline(marks: Sequence[Mark], gold: Gold | None) -> str:
    """Which methods reach gold's box; empty without gold or methods."""
    methods = [m for m in marks if not m.control]
    if gold is None or not methods:
        return ""
    there = [m.title for m in methods if inside(m, gold)]
    if not there:
        return f"None of {len(methods)} methods reaches gold's box on all three axes"
    return f"{len(there)} of {len(methods)} methods reach gold's box: {listed(there[:6])}" + (
        " and others" * (len(there) > 6)
    )


def twin(marks: Sequence[Mark], gold: Gold | None) -> list[Row]:
    """The table twin: a row a method, and one for gold."""
    names = ["method", "verdict", "Pareto front"]
    names += [f"{axis} {end}" for axis in ("says", "keeps", "knows") for end in ("", "from", "to")]
    lines: list[tuple[Any, ...]] = [
        (m.title, m.verdict, m.best, *m.says, *m.keeps, *m.knows) for m in marks
    ]
    if gold is not None:
        ranges = [(None, *ends) for ends in (gold.says, gold.keeps, gold.knows)]
        lines.append(("gold", "", None, *ranges[0], *ranges[1], *ranges[2]))
    return table([name.strip() for name in names], lines)
