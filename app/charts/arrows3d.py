"""Arrows: class means and head rows in the three axes that hold most of them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from app.charts import Chart, Row, present
from app.charts.table import table
from app.charts.text import safe, short
from app.charts.theme import NAMES, Theme, dressed

Array = np.ndarray
CAMERA = {"eye": {"x": 1.02, "y": 1.02, "z": 0.62}}
NAMED = 12
"""Most classes whose names are written at the tips."""


def draw(
    means: Mapping[str, Array],
    heads: Mapping[str, Array],
    classes: Sequence[str],
    theme: Theme,
    *,
    forget: Sequence[int] = (),
    camera: Mapping[str, Any] | None = None,
    height: int = 360,
) -> Chart:
    """A scene a model with (C 3) `means` as full arrows and `heads` as dashed ones.

    All scenes share one cube, so lengths compare. Either mapping may be empty. The camera stays
    where a person has turned it; `camera` sets where it starts.
    """
    models = present(means or heads)
    figure = make_subplots(
        1, max(1, len(models)), specs=[[{"type": "scene"}] * max(1, len(models))],
        horizontal_spacing=0.01, subplot_titles=[NAMES[m] for m in models],
    )  # fmt: skip
    for column, model in enumerate(models, 1):
        for kind, by_model in (("class mean", means), ("head row", heads)):
            if model in by_model:
                for trace in arrows(by_model[model], kind, classes, forget, theme):
                    figure.add_trace(trace, 1, column)
    half = reach([*means.values(), *heads.values()])
    dressed(figure, theme, height, showlegend=False, margin={"t": 30, "l": 0, "r": 0, "b": 0})
    figure.update_scenes(**scene(half, camera or CAMERA))
    for note, model in zip(figure.layout.annotations, models, strict=False):  # pyright: ignore[reportAttributeAccessIssue]
        note.update(font={"size": 13, "color": theme.text(model)})
    lines = rows(means, heads, models, classes)
    return Chart(figure, headline(means, forget, classes), told(models, classes, forget), lines)


def arrows(
    tips: Array, kind: str, classes: Sequence[str], forget: Sequence[int], theme: Theme
) -> list[go.Scatter3d]:
    """An arrow a class from the centre; the forget class's is thick, ringed and last."""
    order = [c for c in range(len(classes)) if c not in forget] + list(forget)
    known = [c for c in order if np.isfinite(tips[c]).all()]
    drawn = [arrow(tips[c], kind, c, classes, c in forget, theme) for c in known]
    if kind == "class mean":
        written = [c for c in known if c in forget or len(classes) <= NAMED]
        drawn += [name(tips[c], classes[c], c in forget, theme) for c in written]
        drawn += [ring(tips[c], theme) for c in known if c in forget]
    return drawn


def arrow(
    tip: Array, kind: str, label: int, classes: Sequence[str], thick: bool, theme: Theme
) -> go.Scatter3d:
    """A shaft with a mark at its tip: round for a mean, a diamond for a head row."""
    colour, _ = theme.of_class(label)
    mean = kind == "class mean"
    x, y, z = ([0.0, float(v)] for v in tip)
    return go.Scatter3d(
        x=x,
        y=y,
        z=z,
        mode="lines+markers",
        line={"color": colour, "width": 8 if thick else 5, "dash": "solid" if mean else "dash"},
        marker={
            "size": [0, 7 if thick else 5],
            "symbol": "circle" if mean else "diamond",
            "color": colour,
            "opacity": 1,
            "line": {"width": 0},
        },
        customdata=[[label, safe(classes[label]), kind]] * 2,
        hovertemplate="%{customdata[1]}, %{customdata[2]}<extra></extra>",
    )


def name(tip: Array, text: str, ringed: bool, theme: Theme) -> go.Scatter3d:
    """A class's name, a little beyond the tip of its mean."""
    far = np.asarray(tip, float) * (1 + 0.12 / max(float(np.linalg.norm(tip)), 0.12))
    x, y, z = ([float(v)] for v in far)
    font = {"size": 12, "color": theme.forget_text if ringed else theme.muted}
    place = {"mode": "text", "textposition": "middle center", "hoverinfo": "skip"}
    return go.Scatter3d(x=x, y=y, z=z, text=[safe(short(text))], textfont=font, **place)


def ring(tip: Array, theme: Theme) -> go.Scatter3d:
    """The ring round the tip of what was to be forgotten."""
    x, y, z = ([float(v)] for v in tip)
    mark = {"symbol": "circle-open", "size": 14, "color": theme.forget, "line": {"width": 3}}
    return go.Scatter3d(x=x, y=y, z=z, mode="markers", marker=mark, hoverinfo="skip")


def reach(points: Sequence[Array]) -> float:
    """Half the side of the cube that holds all arrows."""
    every = np.concatenate([np.asarray(p, float).ravel() for p in points] or [np.empty(0)])
    every = np.abs(every[np.isfinite(every)])
    return 1.05 * float(every.max()) if len(every) and every.max() > 0 else 1.0


def scene(half: float, camera: Mapping[str, Any]) -> dict[str, Any]:
    """The same bare cube for each model."""
    axis = {"range": [-half, half], "visible": False, "showspikes": False}
    return {
        "xaxis": axis,
        "yaxis": axis,
        "zaxis": axis,
        "aspectmode": "cube",
        "camera": dict(camera),
        "uirevision": "kept",
    }


def headline(means: Mapping[str, Array], forget: Sequence[int], classes: Sequence[str]) -> str:
    """How long the forgotten class's arrow is beside the others', in the unlearned model."""
    if "unlearned" not in means or len(forget) != 1:
        return ""
    length = np.linalg.norm(np.asarray(means["unlearned"], float), axis=1)
    others = np.delete(length, forget[0])
    if not np.isfinite(length[forget[0]]) or not np.nanmean(others) > 0:
        return ""
    share = 100 * length[forget[0]] / np.nanmean(others)
    return f"Unlearned: the mean of {classes[forget[0]]} is {share:.0f} % as long as the others"


def told(models: Sequence[str], classes: Sequence[str], forget: Sequence[int]) -> str:
    """The picture in words."""
    gone = ", ".join(classes[c] for c in forget)
    ringed = f" Ringed: {gone}." if gone else ""
    return (
        f"Class means (full) and head rows (dashed) of {len(classes)} classes as arrows from the"
        f" centre in three dimensions, for {', '.join(models)}.{ringed}"
    )


def rows(
    means: Mapping[str, Array],
    heads: Mapping[str, Array],
    models: Sequence[str],
    classes: Sequence[str],
) -> list[Row]:
    """The table twin: a row an arrow."""
    kinds = (("class mean", means), ("head row", heads))
    lines = [
        (model, kind, name, *np.asarray(by_model[model][c], float).tolist())
        for model in models
        for kind, by_model in kinds
        if model in by_model
        for c, name in enumerate(classes)
    ]
    return table(("model", "arrow", "class", "x", "y", "z"), lines)
