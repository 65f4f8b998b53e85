"""Maps: the same images as points in all three models, on one pair of axes."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import plotly.graph_objects as go

from app.charts import Chart, LegendItem, present
from app.charts.table import table
from app.charts.text import listed, named, safe
from app.charts.theme import NAMES, Theme, dressed

Array = np.ndarray
ColourBy = Literal["label", "prediction", "state"]

WEBGL_FROM = 1000
"""Points from which WebGL draws; below, SVG does, which every browser has."""
NEIGHBOURS = 10

STATES = {
    "correctly forgotten": ("#009E73", "circle"),
    "not forgotten": ("#B3261E", "square"),
    "retained, right": ("#8A97A3", "circle"),
    "retained, wrong": ("#3D8BD0", "x"),
    "over-forgotten": ("#7A3FC4", "triangle-down"),
}
"""What has become of an image; over-forgotten: retained, gold has it right, unlearned not."""


@dataclass(frozen=True, eq=False)
class Points:
    """The images on the map; rows of all arrays belong together."""

    ids: Array
    y: Array
    forget: Array
    """Whether the image was to be forgotten (m, bool)."""
    pred: Mapping[str, Array]
    """Predicted class by model (m); -1 where the model gives no answer."""
    classes: Sequence[str]
    prob: Mapping[str, Array] | None = None
    """Probabilities by model (m k), for hovering."""


@dataclass(frozen=True, eq=False)
class Maps:
    """One chart a model, and the legend that they share."""

    charts: Mapping[str, Chart]
    legend: list[LegendItem]


def draw(
    layout: Mapping[str, Array],
    points: Points,
    theme: Theme,
    *,
    colour: ColourBy = "label",
    selected: Iterable[int] = (),
    share: float = 1.0,
    target: str = "of the forget set",
    height: int = 370,
) -> Maps:
    """Maps of `layout` (m 2 by model), original, unlearned, gold.

    `selected` ids stand out in all three. `share` in [0, 1] is how far the middle map's points
    have gone from the original's places to the unlearned model's.
    """
    window, chosen, details = ranges(layout), set(selected), hover_texts(points)
    shown = dict(layout)
    if share < 1 and {"original", "unlearned"} <= set(layout):
        shown["unlearned"] = moved(layout["original"], layout["unlearned"], share)
    charts = {}
    for model in present(shown, points.pred):
        looks = marks(points, model, theme, colour)
        figure = one_map(shown[model], points, looks, details, chosen, theme)
        dressed(figure, theme, height, **frame(window, theme))
        charts[model] = described(figure, model, shown[model], points, target)
    return Maps(charts, legend(points, list(charts), theme, colour))


def ranges(layout: Mapping[str, Array]) -> tuple[list[float], list[float]]:
    """One range of x and of y that holds all points of all models, with a margin."""
    every = np.concatenate([np.asarray(at, float) for at in layout.values()])
    every = every[np.isfinite(every).all(1)]
    low, high = (every.min(0), every.max(0)) if len(every) else (np.zeros(2), np.ones(2))
    pad = 0.05 * max(float((high - low).max()), 1e-6)
    x, y = (([float(a) - pad, float(b) + pad]) for a, b in zip(low, high, strict=True))
    return x, y


def moved(start: Array, end: Array, share: float) -> Array:
    """Points (m 2) a `share` of the way from `start` to `end`; exactly those at 0 and 1."""
    return start if share <= 0 else end if share >= 1 else (1 - share) * start + share * end


def states(points: Points) -> list[str]:
    """The forgetting state of each image, a key of `STATES`."""
    right = {model: points.pred[model] == points.y for model in points.pred}
    after = right["unlearned"]
    lost = right["gold"] & ~after if "gold" in right else np.zeros(len(after), bool)
    names = list(STATES)
    kept = np.where(after, names[2], np.where(lost, names[4], names[3]))
    return np.where(points.forget, np.where(after, names[1], names[0]), kept).tolist()


def marks(points: Points, model: str, theme: Theme, colour: ColourBy) -> list[tuple[str, str]]:
    """Colour and marker of each image in the map of `model`."""
    if colour == "state":
        return [STATES[state] for state in states(points)]
    labels = points.y if colour == "label" else points.pred[model]
    known = {label: theme.of_class(label) for label in set(labels.tolist())}
    return [known[label] for label in labels.tolist()]


def legend(
    points: Points, models: Sequence[str], theme: Theme, colour: ColourBy
) -> list[LegendItem]:
    """One legend for all maps; ringed is what was to be forgotten."""
    if colour == "state":
        found = set(states(points))
        ringed = ("correctly forgotten", "not forgotten")
        return [LegendItem(s, *STATES[s], s in ringed) for s in STATES if s in found]
    labels = [points.y] if colour == "label" else [points.pred[m] for m in models]
    gone = set(points.y[points.forget].tolist()) - set(points.y[~points.forget].tolist())
    seen = sorted(set(np.concatenate(labels).tolist()) if labels else (), key=lambda c: (c < 0, c))
    return [
        LegendItem(named(points.classes, c), *theme.of_class(c), c in gone and colour == "label")
        for c in seen
    ]


def one_map(
    at: Array,
    points: Points,
    looks: list[tuple[str, str]],
    details: list[str],
    chosen: set[int],
    theme: Theme,
) -> go.Figure:
    """Two traces whatever the colouring: retained images, and above them those to be forgotten.

    The sample's id is the first entry of `customdata`: positions count within a trace only.
    """
    kind = go.Scattergl if len(points.ids) >= WEBGL_FROM else go.Scatter
    figure = go.Figure()
    for forget in (False, True):
        rows = np.flatnonzero(points.forget == forget)
        if not len(rows):
            continue
        ids = points.ids[rows].tolist()
        figure.add_trace(
            kind(
                x=at[rows, 0],
                y=at[rows, 1],
                mode="markers",
                name="to be forgotten" if forget else "retained",
                # A list: plotly sends numpy arrays as bytes, which clicks lose.
                customdata=[[i, details[row]] for i, row in zip(ids, rows.tolist(), strict=True)],
                hovertemplate="%{customdata[1]}<extra></extra>",
                selectedpoints=positions(ids, chosen),
                unselected={"marker": {"opacity": 0.07}},
                selected={"marker": {"opacity": 1.0, "size": 8}},
                marker=marker([looks[row] for row in rows.tolist()], forget, theme),
            )
        )
    return figure


def marker(looks: list[tuple[str, str]], forget: bool, theme: Theme) -> dict[str, Any]:
    """Filled marks, ringed where they were to be forgotten.

    Numbers on a scale of the colours in use: Plotly checks a list of colours one by one.
    """
    colours = sorted({colour for colour, _ in looks})
    place = {colour: i for i, colour in enumerate(colours)}
    last = max(1, len(colours) - 1)
    symbols = [symbol for _, symbol in looks]
    return {
        "color": np.array([place[colour] for colour, _ in looks]),
        # A scale has two ends, also that of one colour.
        "colorscale": [[i / last, colours[min(i, len(colours) - 1)]] for i in range(last + 1)],
        "cmin": 0,
        "cmax": last,
        "symbol": symbols if len(set(symbols)) > 1 else symbols[0],
        "size": 7 if forget else 5,
        "opacity": 0.95 if forget else 0.6,
        "line": {"color": theme.forget, "width": 1.6 if forget else 0},
    }


def positions(ids: list[int], chosen: set[int]) -> list[int] | None:
    """Positions of the chosen ids within a trace; None (nothing dimmed) where none is chosen."""
    return [i for i, sample in enumerate(ids) if sample in chosen] if chosen else None


def hover_texts(points: Points) -> list[str]:
    """Id, label and the predictions of each image, escaped."""
    models = present(points.pred)
    names = {c: safe(named(points.classes, c)) for c in range(-1, len(points.classes))}
    lines = []
    for i, (sample, label) in enumerate(zip(points.ids.tolist(), points.y.tolist(), strict=True)):
        said = [f"{NAMES[m]}: {names[int(points.pred[m][i])]}{_sure(points, m, i)}" for m in models]
        mine = " · to be forgotten" if points.forget[i] else ""
        lines.append("<br>".join([f"<b>{names[label]}</b> · id {sample}{mine}", *said]))
    return lines


def _sure(points: Points, model: str, row: int) -> str:
    if points.prob is None or model not in points.prob or points.pred[model][row] < 0:
        return ""
    return f" ({100 * float(points.prob[model][row].max()):.0f} %)"


def frame(window: tuple[list[float], list[float]], theme: Theme) -> dict[str, Any]:
    """Bare axes over `window`: the map's coordinates have no unit."""
    bare = {"visible": False, "fixedrange": False}
    return {
        "xaxis": bare | {"range": window[0]},
        "yaxis": bare | {"range": window[1], "scaleanchor": "x"},
        "dragmode": "lasso",
        "showlegend": False,
        "paper_bgcolor": theme.panel,
        "margin": {"l": 4, "r": 4, "t": 4, "b": 4},
    }


def closeness(at: Array, forget: Array) -> float | None:
    """Mean share, in [0, 1], of an image to be forgotten's nearest points that are such too.

    None where there are too few points to say.
    """
    mine = np.flatnonzero(forget)
    if len(mine) <= NEIGHBOURS or len(at) - len(mine) <= NEIGHBOURS or not np.isfinite(at).all():
        return None
    at = np.asarray(at, float)
    far = ((at[mine, None] - at[None]) ** 2).sum(2)
    far[np.arange(len(mine)), mine] = np.inf
    near = np.argpartition(far, NEIGHBOURS, axis=1)[:, :NEIGHBOURS]
    return float(forget[near].mean())


def described(figure: go.Figure, model: str, at: Array, points: Points, target: str) -> Chart:
    """The map of one model, with what it shows in words."""
    share = closeness(at, points.forget)
    title = "" if share is None else f"{100 * share:.0f} % of its neighbours are {target}"
    models, names = present(points.pred), points.classes
    alt = (
        f"Map of {len(at)} images in the {model} model, {int(points.forget.sum())} of them to be"
        f" forgotten. {title}{'.' if title else ''} Classes: {listed(list(names)[:30])}."
    )
    columns = ["id", "label", "to be forgotten", *(f"{m} predicts" for m in models), "x", "y"]
    said = [[named(names, c) for c in points.pred[m].tolist()] for m in models]
    labels = [named(names, c) for c in points.y.tolist()]
    values = zip(points.ids, labels, points.forget, *said, at[:, 0], at[:, 1], strict=True)
    return Chart(figure, title, alt.strip(), table(columns, values))
