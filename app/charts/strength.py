"""Strength: what a projection changes as it goes from nothing to everything."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from app.charts import Chart
from app.charts.angles import ideal, pairs
from app.charts.panels import grid, head, level, upright
from app.charts.table import rows
from app.charts.text import amount
from app.charts.theme import Theme, dressed

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Sweep:
    """What was measured at each of `values` (s, in [0, 1])."""

    values: Array
    mean_angles: Array
    """(s C C) degrees between class means."""
    head_angles: Array
    """(s C C) degrees between head rows."""
    forget_accuracy: Array
    retain_accuracy: Array


def draw(
    sweep: Sweep, chosen: float, theme: Theme, *, forget: Sequence[int] = (), height: int = 300
) -> Chart:
    """Angles on the left, accuracies on the right, along strength; `chosen` is marked."""
    left, right = lines(sweep, forget)
    figure = grid(1, 2, horizontal_spacing=0.13)
    looks = {"class means": "solid", "head rows": "dash"}
    for name, values in left.items():
        colour = theme.forget if "forg" in name else theme.edge("original")
        dash = next(d for kind, d in looks.items() if name.startswith(kind))
        _curve(figure, sweep.values, values, chosen, (name, colour, dash, "degrees"), 1)
    for name, values in right.items():
        colour = theme.forget if "forg" in name else theme.edge("original")
        _curve(figure, sweep.values, values, chosen, (name, colour, "solid", "fraction"), 2)
    for column, name in (
        (1, "Mean angle (dotted: ideal of C classes)"),
        (2, "Accuracy on test images"),
    ):
        head(figure, name, theme.ink, 1, column)
        mark = {"color": theme.ink, "width": 1.2, "dash": "dot"}
        upright(figure, chosen, (1, column), mark)
    ideals(figure, sweep.mean_angles.shape[1], theme)
    dressed(figure, theme, height, margin={"t": 26, "b": 60}, legend={"y": -0.22, "yanchor": "top"})
    figure.update_xaxes(title="strength", range=[-0.02, 1.02], zeroline=False)
    figure.update_yaxes(ticksuffix="°", col=1)
    figure.update_yaxes(tickformat=".0%", range=[-0.03, 1.03], col=2)
    twin = rows(strength=sweep.values, **_columns(left, "degrees"), **_columns(right, "fraction"))
    said = headline(sweep, chosen, forget)
    return Chart(
        figure, said, f"Angles and accuracies along the strength of the cut. {said}.", twin
    )


def ideals(figure: go.Figure, classes: int, theme: Theme) -> None:
    """The ideal angles for C and for C - 1 classes, named at the right end."""
    for count in (classes, classes - 1):
        if math.isfinite(ideal(count)):
            level(figure, ideal(count), (1, 1), {"color": theme.muted, "width": 1, "dash": "dot"})
            figure.add_annotation(
                text=f"C = {count}", x=1, xref="x domain", y=ideal(count), yref="y",
                xanchor="left", xshift=3, showarrow=False, font={"size": 11, "color": theme.muted},
            )  # fmt: skip


def lines(sweep: Sweep, forget: Sequence[int]) -> tuple[dict[str, Array], dict[str, Array]]:
    """Mean angles by name, and accuracies by name, along strength."""
    left: dict[str, Array] = {}
    for kind, matrices in (("class means", sweep.mean_angles), ("head rows", sweep.head_angles)):
        split = [pairs(m, forget) for m in matrices]
        left[f"{kind}, retained pairs"] = np.array([_mean(a[~gone]) for a, gone in split])
        if forget:
            left[f"{kind}, pairs with the forget class"] = np.array([_mean(a[g]) for a, g in split])
    return left, {"retained": sweep.retain_accuracy, "to be forgotten": sweep.forget_accuracy}


def at(values: Array, curve: Array, chosen: float) -> float:
    """The curve at `chosen`, between its neighbours; NaN where it has no value there."""
    near = np.isclose(values, chosen)
    return float(curve[near][0]) if near.any() else float(np.interp(chosen, values, curve))


def headline(sweep: Sweep, chosen: float, forget: Sequence[int]) -> str:
    """The reading at the marker, in words."""
    left, right = lines(sweep, forget)
    angle = at(sweep.values, left["class means, retained pairs"], chosen)
    gone, kept = (at(sweep.values, right[k], chosen) for k in ("to be forgotten", "retained"))
    return (
        f"At strength {chosen:.2f} retained class means stand {amount(angle, 'degrees')} apart;"
        f" accuracy is {amount(gone, 'fraction')} on what was to be forgotten,"
        f" {amount(kept, 'fraction')} on the rest"
    )


def _curve(
    figure: go.Figure,
    values: Array,
    curve: Array,
    chosen: float,
    look: tuple[str, str, str, str],
    column: int,
) -> None:
    name, colour, dash, unit = look
    now = at(values, curve, chosen)
    figure.add_trace(
        go.Scatter(
            x=values.tolist(),
            y=_known(curve),
            mode="lines",
            name=name,
            line={"color": colour, "dash": dash, "width": 2.2},
            customdata=[amount(float(v), unit) for v in curve],
            hovertemplate=f"{name}: %{{customdata}}<extra></extra>",
        ),
        1,
        column,
    )
    figure.add_trace(
        go.Scatter(
            x=[chosen],
            y=_known(np.array([now])),
            mode="markers",
            marker={"color": colour, "size": 10},
            showlegend=False,
            customdata=[amount(now, unit)],
            hovertemplate=f"{name}: %{{customdata}}<extra></extra>",
        ),
        1,
        column,
    )


def _known(curve: Array) -> list[float | None]:
    return [float(v) if np.isfinite(v) else None for v in curve]


def _columns(curves: dict[str, Array], unit: str) -> dict[str, Array]:
    return {f"{name} ({unit})": curve for name, curve in curves.items()}


def _mean(angles: Array) -> float:
    known = angles[np.isfinite(angles)]
    return float(known.mean()) if len(known) else float("nan")
