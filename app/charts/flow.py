"""Flow: where the images that were to be forgotten go, in each model."""

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from app.charts import Chart, Row, present
from app.charts.table import table
from app.charts.text import named, safe, short
from app.charts.theme import NAMES, Theme, dressed, mixed, on

Array = np.ndarray
SHOWN = 8
"""Most predicted classes with a colour of their own; the rest is `other classes`."""
APART = 6
"""Most true classes with bars of their own."""
TIE, OTHER = -1, -2
WRITE_FROM = 0.055
"""Least share of a bar that has room for its number, and (twice that) for its name."""


def draw(
    y: Array,
    pred: Mapping[str, Array],
    classes: Sequence[str],
    theme: Theme,
) -> Chart:
    """Stacked bars: a bar a true class and model, a segment a predicted class (-1: a tie).

    `y` (n) and `pred` (n by model) are of the images to be forgotten. The right answer is ringed.
    Segments carry `customdata` [true, predicted, model], so a click can show their images. Of more
    than `APART` true classes only right and wrong answers are told apart, as classes 0 and 1.
    """
    if len(set(np.asarray(y).tolist())) > APART:
        y, pred, classes = judged(y, pred)
    models, groups = present(pred), sorted(set(np.asarray(y).tolist()))
    counts = counted(y, pred, groups, len(classes))
    order = ranked(counts, y, len(classes))
    figure = go.Figure()
    for label in order:
        figure.add_trace(segment(label, order, counts, groups, classes, theme))
    bars = [(g, m) for g in groups for m in models]
    height = 34 * len(bars) + 14 * len(groups) + 96
    dressed(figure, theme, height, barmode="stack", bargap=0.22, margin={"t": 8, "b": 40})
    figure.update_layout(
        legend={"y": -0.02 - 26 / height, "yanchor": "top", "traceorder": "normal"}
    )
    figure.update_layout(showlegend=True, uniformtext={"minsize": 9, "mode": "hide"})
    figure.update_xaxes(visible=False, range=[0, 1])
    figure.update_yaxes(
        autorange="reversed", showgrid=False, tickfont={"color": theme.ink}, ticklabelstandoff=6
    )
    lines = twin(counts, groups, models, classes)
    title = headline(counts, classes)
    return Chart(figure, title, told(counts, models, classes), lines)


def judged(y: Array, pred: Mapping[str, Array]) -> tuple[Array, dict[str, Array], tuple[str, str]]:
    """The same answers, told apart as right (0), wrong (1) and none (-1) only."""
    told_apart = {m: np.where(p < 0, TIE, np.where(p == y, 0, 1)) for m, p in pred.items()}
    return np.zeros(len(y), int), told_apart, ("the right class", "another class")


def counted(
    y: Array, pred: Mapping[str, Array], groups: Sequence[int], classes: int
) -> dict[tuple[int, str], Array]:
    """Images by true class and model, then predicted class; the last place holds ties."""
    return {
        # -1, no answer, becomes the last place.
        (group, m): np.bincount(pred[m][y == group] % (classes + 1), minlength=classes + 1)
        for group in groups
        for m in present(pred)
    }


def ranked(counts: Mapping[tuple[int, str], Array], y: Array, classes: int) -> list[int]:
    """Predicted classes to draw: the true ones, then the most frequent, other classes, ties."""
    total = np.sum(list(counts.values()), axis=0) if counts else np.zeros(classes + 1)
    true = sorted(set(np.asarray(y).tolist()))[:APART]
    rest = [c for c in np.argsort(-total[:classes], kind="stable").tolist() if c not in true]
    rest = [c for c in rest if total[c] > 0]
    room = max(0, SHOWN - len(true))
    ends = ([OTHER] if len(rest) > room else []) + ([TIE] if total[classes] > 0 else [])
    return true + rest[:room] + ends


def size(counts: Array, label: int, order: Sequence[int]) -> int:
    """Images of one bar that were answered by `label` (or by a tie, or by any other class)."""
    if label == OTHER:
        named_ones = [c for c in order if c >= 0]
        return int(counts[:-1].sum() - counts[named_ones].sum())
    return int(counts[label])


def segment(
    label: int,
    order: Sequence[int],
    counts: Mapping[tuple[int, str], Array],
    groups: Sequence[int],
    classes: Sequence[str],
    theme: Theme,
) -> go.Bar:
    """One predicted class's part of each bar."""
    grey = mixed(theme.muted, theme.panel, 0.45)
    colour = {OTHER: grey, TIE: theme.muted}.get(label) or theme.of_class(label)[0]
    name = "other classes" if label == OTHER else named(classes, label)
    sizes = [size(c, label, order) for c in counts.values()]
    shares = [n / max(1, int(c.sum())) for n, c in zip(sizes, counts.values(), strict=True)]
    hatch = {"shape": "/", "size": 6, "bgcolor": theme.panel, "fgcolor": theme.muted}
    edge = [(theme.forget, 3) if label == group else (theme.paper, 1) for group, _ in counts]
    return go.Bar(
        orientation="h",
        y=axis_names(counts, groups, classes),
        x=shares,
        name=safe(short(name, 22)),
        text=[_written(short(name, 16), share) for share in shares],
        textposition="inside",
        insidetextanchor="middle",
        textangle=0,
        textfont={"size": 12, "color": theme.ink if label == TIE else on(colour)},
        marker={
            "color": colour,
            "pattern": hatch if label == TIE else {},
            "line": {"color": [c for c, _ in edge], "width": [w for _, w in edge]},
        },
        customdata=[
            [group, label, model, f"{safe(name)}: {n} images ({100 * share:.1f} %)"]
            for (group, model), n, share in zip(counts, sizes, shares, strict=True)
        ],
        hovertemplate="%{customdata[3]}<extra></extra>",
    )


def axis_names(
    counts: Mapping[tuple[int, str], Array], groups: Sequence[int], classes: Sequence[str]
) -> list[str] | list[list[str]]:
    """Labels of the bars: models, under their true class where there are several."""
    models = [NAMES[model] for _, model in counts]
    if len(groups) == 1:
        return models
    return [[safe(short(classes[group])) for group, _ in counts], models]


def headline(counts: Mapping[tuple[int, str], Array], classes: Sequence[str]) -> str:
    """Where most of the images go in the unlearned model, and in gold."""
    said = []
    for model in ("unlearned", "gold"):
        mine = [c for (_, m), c in counts.items() if m == model]
        total = np.sum(mine, axis=0) if mine else np.zeros(1)
        if total.sum() > 0:
            best = int(total.argmax())
            name = named(classes, best if best < len(classes) else TIE)
            said.append(f"{NAMES[model]}: {100 * total[best] / total.sum():.0f} % to {name}")
    return "; ".join(said)


def told(
    counts: Mapping[tuple[int, str], Array], models: Sequence[str], classes: Sequence[str]
) -> str:
    """The picture in words."""
    images = sum(int(c.sum()) for (_, m), c in counts.items() if m == (models or [""])[0])
    end = headline(counts, classes)
    return f"Predicted classes of {images} images that were to be forgotten. {end}.".strip()


def twin(
    counts: Mapping[tuple[int, str], Array],
    groups: Sequence[int],
    models: Sequence[str],
    classes: Sequence[str],
) -> list[Row]:
    """The table twin: a row a true and predicted class that occur together, a column a model."""
    lines = []
    for group in groups:
        for label in [*range(len(classes)), TIE]:
            images = [int(counts[group, m][label]) for m in models]
            if any(images):
                lines.append((classes[group], named(classes, label), *images))
    return table(("label", "predicted", *(f"{m} (images)" for m in models)), lines)


def _written(name: str, share: float) -> str:
    if share < WRITE_FROM:
        return ""
    number = f"{100 * share:.0f} %"
    return f"{safe(name)} {number}" if share >= 2.4 * WRITE_FROM else number
