"""Angles: how far class means and head rows stand apart, against the ideal arrangement."""

import math
from collections.abc import Mapping, Sequence
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import plotly.graph_objects as go

from app.charts import Chart, present
from app.charts.panels import grid, head, upright
from app.charts.table import table
from app.charts.text import safe, short
from app.charts.theme import NAMES, Theme, dressed

Array = np.ndarray
KINDS = {"means": "class means", "head": "head rows"}


def ideal(classes: int) -> float:
    """Degrees between the corners of a simplex: arccos(-1 / (C - 1)); NaN below two classes."""
    return math.degrees(math.acos(-1 / (classes - 1))) if classes > 1 else math.nan


def pairs(matrix: Array, forget: Sequence[int] = ()) -> tuple[Array, Array]:
    """The C(C-1)/2 angles, and which of them have a class of `forget` on one side."""
    rows, columns = np.triu_indices(len(matrix), 1)
    gone = np.isin(rows, list(forget)) | np.isin(columns, list(forget))
    return np.asarray(matrix, float)[rows, columns], gone


def histogram(
    matrices: Mapping[str, Mapping[str, Array]],
    classes: Sequence[str],
    theme: Theme,
    *,
    forget: Sequence[int] = (),
    height: int = 420,
) -> Chart:
    """Histograms of all angles in degrees; `matrices` has (C C) by kind (`KINDS`) and model.

    A row a model, a column a kind, all on one axis; pairs with the forget class are ringed.
    """
    kinds = [kind for kind in KINDS if kind in matrices]
    models = present(*(matrices[kind] for kind in kinds))
    figure = grid(
        len(models), len(kinds), shared_xaxes="all", shared_yaxes="all",
        vertical_spacing=0.1, horizontal_spacing=0.04,
    )  # fmt: skip
    every = [pairs(matrices[kind][model])[0] for kind in kinds for model in models]
    edges = bins(every, [ideal(len(classes)), ideal(len(classes) - 1)])
    for column, kind in enumerate(kinds, 1):
        for row, model in enumerate(models, 1):
            angles, gone = pairs(matrices[kind][model], forget)
            for trace in bars(angles, gone, edges, model, theme):
                figure.add_trace(trace, row, column)
            ideals(figure, len(classes), (row, column), theme)
            title = f"{NAMES[model]}: {KINDS[kind]}{_mean(angles)}"
            head(figure, title, theme.text(model), row, column)
        figure.update_xaxes(title="angle (degrees)", row=len(models), col=column)
    figure.update_yaxes(title="pairs", col=1, nticks=4)
    figure.update_yaxes(range=[0, 1.1 * most(list(figure.select_traces({"type": "bar"})))])
    if forget:
        said = f"angle (degrees) · {ringed([classes[c] for c in forget], theme)}"
        figure.update_xaxes(title=said, row=len(models), col=len(kinds))
    looks = {"barmode": "stack", "bargap": 0.08, "showlegend": False, "margin": {"t": 26}}
    dressed(figure, theme, height, **looks)
    lines = pair_rows(matrices, kinds, models, classes)
    return Chart(figure, headline(matrices, len(classes)), told(matrices, len(classes)), lines)


def bins(every: Sequence[Array], marks: Sequence[float]) -> Array:
    """Common bin edges (degrees) of about two degrees, at most 60 of them."""
    values = np.concatenate([*every, np.array(marks, float)])
    values = values[np.isfinite(values)]
    low, high = (values.min(), values.max()) if len(values) else (80.0, 100.0)
    width = max(2.0, math.ceil((high - low) / 60))
    return np.arange(math.floor(low / width) - 1, math.ceil(high / width) + 2) * width


def bars(angles: Array, gone: Array, edges: Array, model: str, theme: Theme) -> list[go.Bar]:
    """The pairs of retained classes, and on top those with the forget class, ringed."""
    found = []
    for ringed in (False, True):
        counts, _ = np.histogram(angles[(gone == ringed) & np.isfinite(angles)], edges)
        text = "with the forget class" if ringed else "retained classes"
        line = {"color": theme.forget, "width": 2} if ringed else {"width": 0}
        found.append(
            go.Bar(
                x=((edges[:-1] + edges[1:]) / 2).tolist(),
                # An empty bar would still draw its ring.
                y=[n or None for n in counts.tolist()],
                marker={"color": theme.mark(model), "line": line},
                customdata=[f"{a:g} to {b:g}°" for a, b in pairwise(edges)],
                hovertemplate=f"%{{customdata}}: %{{y}} pairs, {text}<extra></extra>",
            )
        )
    return found


def ringed(names: Sequence[str], theme: Theme) -> str:
    """What the rings mean, escaped, in their colour."""
    who = safe(short(names[0], 18)) if len(names) == 1 else "the forget classes"
    return f'<span style="color:{theme.forget_text}">ringed: pairs with {who}</span>'


def most(drawn: Sequence[Any]) -> float:
    """Height of the highest stack of bars (traces in pairs, one upon the other)."""
    heights = [[n or 0 for n in trace.y] for trace in drawn]
    stacks = [np.add(a, b) for a, b in zip(heights[::2], heights[1::2], strict=True)]
    return max([1.0, *(float(s.max()) for s in stacks)])


def ideals(figure: go.Figure, classes: int, cell: tuple[int, int], theme: Theme) -> None:
    """Lines at the ideal angle for C and for C - 1 classes; the first row names them."""
    for count, dash, anchor in ((classes, "solid", "right"), (classes - 1, "dot", "left")):
        at = ideal(count)
        if math.isnan(at):
            continue
        line = {"color": theme.ink, "width": 1.2, "dash": dash}
        upright(figure, at, cell, line)
        if cell[0] == 1:
            figure.add_annotation(
                text=f"ideal, {count} classes: {at:.1f}°", x=at, y=1, xanchor=anchor,
                yanchor="top", yref="y domain", showarrow=False,
                xshift=4 if anchor == "left" else -4,
                font={"size": 11, "color": theme.muted}, row=cell[0], col=cell[1],
            )  # fmt: skip


def pair_rows(
    matrices: Mapping[str, Mapping[str, Array]],
    kinds: Sequence[str],
    models: Sequence[str],
    classes: Sequence[str],
) -> list[dict[str, Any]]:
    """The table twin: a row a kind and pair, a column a model."""
    names = ["of", "class", "other class", *(f"{m} (degrees)" for m in models)]
    lines = [
        (KINDS[kind], classes[i], classes[j], *(float(matrices[kind][m][i][j]) for m in models))
        for kind in kinds
        for i, j in combinations(range(len(classes)), 2)
    ]
    return table(names, lines)


def headline(matrices: Mapping[str, Mapping[str, Array]], classes: int) -> str:
    """Mean angle of the unlearned model's (first) kind beside both ideals."""
    kind = next(iter(matrices), "")
    if not kind or "unlearned" not in matrices[kind]:
        return ""
    angles, _ = pairs(matrices[kind]["unlearned"])
    if not np.isfinite(angles).any() or classes < 3:
        return ""
    return (
        f"Unlearned {KINDS[kind]} stand {np.nanmean(angles):.1f}° apart on average; ideal is"
        f" {ideal(classes):.1f}° for {classes} classes, {ideal(classes - 1):.1f}° for {classes - 1}"
    )


def told(matrices: Mapping[str, Mapping[str, Array]], classes: int) -> str:
    """The picture in words: mean and range of the angles by kind and model."""
    said = []
    for kind, by_model in matrices.items():
        for model in present(by_model):
            angles, _ = pairs(by_model[model])
            known = angles[np.isfinite(angles)]
            if len(known):
                said.append(
                    f"{NAMES[model]} {KINDS[kind]}: mean {known.mean():.1f}°, from"
                    f" {known.min():.1f} to {known.max():.1f}°."
                )
    return f"Angles between {classes} classes. " + " ".join(said)


def _mean(angles: Array) -> str:
    return f", mean {np.nanmean(angles):.1f}°" if np.isfinite(angles).any() else ", no angles"
