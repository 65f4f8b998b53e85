"""Angle matrix: which class stands how far from which, in the three models on one scale."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from app.charts import Chart, present
from app.charts.angles import ideal, pair_rows, pairs, told
from app.charts.panels import grid, head
from app.charts.text import amount, safe, short
from app.charts.theme import NAMES, Theme, dressed, mixed

Array = np.ndarray
LABELLED = 30
"""Most classes whose names fit beside a matrix."""
SELECTABLE = 60
"""Most classes whose cells can be picked: a mark a cell is too much for a browser beyond."""
WRITTEN = 12
"""Most classes for which some numbers fit into a matrix's cells."""


def draw(
    matrices: Mapping[str, Array],
    classes: Sequence[str],
    theme: Theme,
    *,
    forget: Sequence[int] = (),
    kind: str = "means",
    height: int = 400,
) -> Chart:
    """The angles (C C, degrees) of each model as a heatmap on one colour scale.

    Heatmaps do not select; invisible squares on the cells do, with `customdata` [row, column].
    """
    models = present(matrices)
    figure = grid(1, len(models), shared_yaxes=True, horizontal_spacing=0.025)
    every = [pairs(matrices[m])[0] for m in models]
    scale = colours(np.concatenate([*every, np.empty(0)]), ideal(len(classes)), theme)
    for column, model in enumerate(models, 1):
        values = _blank_diagonal(matrices[model])
        figure.add_trace(heatmap(values, scale), 1, column)
        if len(classes) <= SELECTABLE:
            figure.add_trace(cells(values, classes, model), 1, column)
        head(figure, NAMES[model], theme.text(model), 1, column)
    dressed(figure, theme, height, coloraxis=scale, showlegend=False, margin={"t": 26})
    figure.update_xaxes(**ticks(classes, forget, theme), tickangle=-45)
    figure.update_yaxes(**ticks(classes, forget, theme), autorange="reversed")
    figure.update_xaxes(showgrid=False, zeroline=False, ticks="")
    figure.update_yaxes(showgrid=False, zeroline=False, ticks="")
    named = {kind: matrices}
    lines = pair_rows(named, [kind], models, classes)
    return Chart(figure, closest(matrices, classes), told(named, len(classes)), lines)


def closest(matrices: Mapping[str, Array], classes: Sequence[str]) -> str:
    """The unlearned model's two classes with the smallest angle; empty where there are none."""
    values = _blank_diagonal(matrices.get("unlearned", np.empty((0, 0))))
    if not np.isfinite(values).any():
        return ""
    i, j = sorted(int(k) for k in np.unravel_index(np.nanargmin(values), values.shape))
    angle = amount(float(values[i, j]), "degrees")
    return f"Closest in the unlearned model: {classes[i]} and {classes[j]}, {angle}"


def heatmap(values: Array, scale: Mapping[str, Any]) -> go.Heatmap:
    """One model's cells; of few classes the conspicuous angles are written."""
    many = len(values) > SELECTABLE
    return go.Heatmap(
        z=[[None if math.isnan(v) else round(v, 2) for v in line] for line in values.tolist()],
        text=written(values, scale) if len(values) <= WRITTEN else None,
        texttemplate="%{text}",
        textfont={"size": 9},
        coloraxis="coloraxis",
        hoverinfo="x+y+z" if many else "skip",
        xgap=0 if many else 1,
        ygap=0 if many else 1,
    )


def written(values: Array, scale: Mapping[str, Any]) -> list[list[str]]:
    """Angles beyond half of the scale, in degrees; all of them would not fit side by side."""
    middle = (scale["cmin"] + scale["cmax"]) / 2
    far = np.abs(values - middle) > (scale["cmax"] - scale["cmin"]) / 4
    return [
        [f"{v:.0f}" if f else "" for v, f in zip(line, shown, strict=True)]
        for line, shown in zip(values.tolist(), far.tolist(), strict=True)
    ]


def cells(values: Array, classes: Sequence[str], model: str) -> go.Scatter:
    """Invisible squares to hover over and to select."""
    size = len(values)
    spots = [(i, j) for i in range(size) for j in range(size) if i != j]
    names = [safe(name) for name in classes]
    said = [
        f"{names[i]} and {names[j]}: {amount(float(values[i, j]), 'degrees')}" for i, j in spots
    ]
    return go.Scatter(
        x=[j for _, j in spots],
        y=[i for i, _ in spots],
        mode="markers",
        name=model,
        marker={"symbol": "square", "size": max(4, 260 // size), "opacity": 0},
        unselected={"marker": {"opacity": 0}},
        selected={"marker": {"opacity": 0}},
        customdata=[[i, j, text] for (i, j), text in zip(spots, said, strict=True)],
        hovertemplate="%{customdata[2]}<extra></extra>",
    )


def colours(every: Array, middle: float, theme: Theme) -> dict[str, Any]:
    """One scale for all: the ideal angle is the ground, smaller is blue, larger is ochre."""
    far = float(np.nanmax(np.abs(every - middle))) if np.isfinite(every).any() else 1.0
    half = max(far if math.isfinite(far) else 1.0, 1.0)
    ground = mixed(theme.panel, theme.muted, 0.12)
    ends = ("#0072B2", "#B97F00")
    return {
        "cmin": middle - half if math.isfinite(middle) else 0,
        "cmax": middle + half if math.isfinite(middle) else 180,
        "colorscale": [[0, ends[0]], [0.5, ground], [1, ends[1]]],
        "colorbar": {"thickness": 10, "ticksuffix": "°", "outlinewidth": 0, "len": 1.0, "x": 1.01},
    }


def ticks(classes: Sequence[str], forget: Sequence[int], theme: Theme) -> dict[str, Any]:
    """Class names as tick labels, what was to be forgotten in its colour; numbers where many."""
    if len(classes) > LABELLED:
        return {"nticks": 10}
    names = [
        f'<b><span style="color:{theme.forget_text}">{safe(short(n))}</span></b>'
        if i in forget
        else safe(short(n))
        for i, n in enumerate(classes)
    ]
    return {"tickmode": "array", "tickvals": list(range(len(classes))), "ticktext": names}


def _blank_diagonal(matrix: Array) -> Array:
    values = np.array(matrix, float)
    np.fill_diagonal(values, np.nan)
    return values
