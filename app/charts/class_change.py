"""Class change: what forgetting one class does to the accuracy of each of the others."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from app.charts import Chart, Row
from app.charts.panels import dot
from app.charts.table import table
from app.charts.text import change, safe, short, signed
from app.charts.theme import NAMES, Theme, dressed

Array = np.ndarray
Z = 1.959964
SHOWN = 30
"""Most classes that are drawn: those that change most, and what was to be forgotten."""


@dataclass(frozen=True)
class Change:
    """Accuracy minus the original's (fraction), with its 95 % interval and number of images."""

    value: float
    low: float
    high: float
    n: int


def paired(before: Array, after: Array) -> Change:
    """The change between hits (n, bool) on the same images.

    The interval is Bonett and Price's adjusted Wald interval for paired proportions (2012,
    doi.org/10.3102/1076998611411915), which stays open where nothing changed.
    """
    n = len(before)
    if not n:
        return Change(math.nan, math.nan, math.nan, 0)
    won, lost = int((~before & after).sum()), int((before & ~after).sum())
    up, down = (won + 1) / (n + 2), (lost + 1) / (n + 2)
    half = Z * math.sqrt((up + down - (up - down) ** 2) / (n + 2))
    return Change((won - lost) / n, max(-1.0, up - down - half), min(1.0, up - down + half), n)


def changes(y: Array, pred: Mapping[str, Array], classes: int) -> dict[str, list[Change]]:
    """Changes by model and class, from labels (n) and predictions (n by model)."""
    right = {model: np.asarray(pred[model]) == y for model in pred}
    return {
        m: [paired(right["original"][y == c], right[m][y == c]) for c in range(classes)]
        for m in ("unlearned", "gold")
        if m in right
    }


def draw(
    y: Array,
    pred: Mapping[str, Array],
    classes: Sequence[str],
    theme: Theme,
    *,
    forget: Sequence[int] = (),
) -> Chart:
    """A row a class, sorted by the unlearned model's change; zero is the original."""
    found = changes(y, pred, len(classes))
    order = ranked(found, forget)
    figure = go.Figure()
    figure.add_vline(0, line={"color": theme.edge("original"), "width": 1.6})
    for model, offset in (("gold", 0.16), ("unlearned", -0.16)):
        if model in found:
            figure.add_trace(marks(found[model], model, order, offset, classes, theme))
    for place, label in enumerate(order):
        if label in forget:
            ring = {"color": theme.forget, "width": 2}
            figure.add_hrect(place - 0.46, place + 0.46, line=ring, layer="below")
    height = 28 * len(order) + 92
    dressed(figure, theme, height, margin={"t": 34}, legend={"y": 1.0, "traceorder": "reversed"})
    ticks = _ticks(found)
    figure.update_xaxes(title="change in accuracy against the original (points)")
    figure.update_xaxes(tickvals=ticks, ticktext=[signed(100 * v) for v in ticks])
    names = [_label(classes[c], c in forget, theme) for c in order]
    figure.update_yaxes(tickvals=list(range(len(order))), ticktext=names, showgrid=False)
    figure.update_yaxes(
        range=[len(order) - 0.5, -0.5], tickfont={"color": theme.ink}, ticklabelstandoff=6
    )
    title = headline(found, classes, forget)
    left_out = f" {len(order)} of {len(classes)} classes are drawn." if order[SHOWN - 1 :] else ""
    alt = f"Change of accuracy by class against the original. {title}.{left_out}"
    return Chart(figure, title, alt, twin(found, classes))


def ranked(found: Mapping[str, Sequence[Change]], forget: Sequence[int]) -> list[int]:
    """Classes with images, the greatest loss first; where there are many, the largest changes."""
    first = next(iter(found.values()), [])
    known = [c for c, one in enumerate(first) if one.n]
    kept = sorted(known, key=lambda c: (c not in forget, -abs(first[c].value)))[:SHOWN]
    return sorted(kept, key=lambda c: (first[c].value, c))


def marks(
    found: Sequence[Change],
    model: str,
    order: Sequence[int],
    offset: float,
    classes: Sequence[str],
    theme: Theme,
) -> go.Scatter:
    """One model's changes with their intervals."""
    mine = [found[c] for c in order]
    said = [
        f"{safe(classes[c])}, {model}: {change(one.value, 'fraction')}, from"
        f" {change(one.low, 'fraction')} to {change(one.high, 'fraction')} (n = {one.n})"
        for c, one in zip(order, mine, strict=True)
    ]
    return go.Scatter(
        x=[one.value for one in mine],
        y=[place + offset for place in range(len(order))],
        mode="markers",
        name=NAMES[model],
        marker=dot(model, theme),
        error_x={
            "type": "data",
            "symmetric": False,
            "array": [one.high - one.value for one in mine],
            "arrayminus": [one.value - one.low for one in mine],
            "color": theme.mark(model),
            "thickness": 1.6,
            "width": 0,
        },
        customdata=[[c, text] for c, text in zip(order, said, strict=True)],
        hovertemplate="%{customdata[1]}<extra></extra>",
    )


def headline(
    found: Mapping[str, Sequence[Change]], classes: Sequence[str], forget: Sequence[int]
) -> str:
    """The retained class that the unlearned model lost most of, if its interval says so."""
    mine = [
        (one.value, c)
        for c, one in enumerate(found.get("unlearned", ()))
        if c not in forget and one.n and one.high < 0
    ]
    if not mine:
        return "No retained class has clearly lost accuracy" if "unlearned" in found else ""
    value, label = min(mine)
    return f"{classes[label]} pays most: {change(value, 'fraction')}"


def twin(found: Mapping[str, Sequence[Change]], classes: Sequence[str]) -> list[Row]:
    """The table twin, a row a class."""
    names = ["class", "images"]
    for model in found:
        names += [f"{model} change (fraction)", f"{model} from", f"{model} to"]
    lines = []
    for c, name in enumerate(classes):
        ones = [found[model][c] for model in found]
        known = [v for one in ones for v in (one.value, one.low, one.high)]
        lines.append((name, ones[0].n if ones else 0, *known))
    return table(names, lines)


def _label(name: str, ringed: bool, theme: Theme) -> str:
    text = safe(short(name, 18))
    return f'<b><span style="color:{theme.forget_text}">{text}</span></b>' if ringed else text


def _ticks(found: Mapping[str, Sequence[Change]]) -> list[float]:
    ends = [v for ones in found.values() for one in ones if one.n for v in (one.low, one.high)]
    reach = max(ends, default=0.1) - min([*ends, 0.0])
    step = next(s for s in (0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5, 1) if reach / s <= 9 or s == 1)
    low, high = math.floor(min([*ends, 0.0]) / step), math.ceil(max([*ends, 0.0]) / step)
    return [round(i * step, 4) for i in range(low, high + 1)]
