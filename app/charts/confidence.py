"""Confidence: how sure each model is of its answers on what was to be forgotten."""

from collections.abc import Mapping

import numpy as np
import plotly.graph_objects as go

from app.charts import Chart, Row, present
from app.charts.panels import grid, head, key
from app.charts.table import table
from app.charts.theme import DASHES, NAMES, Theme, dressed, faded

Array = np.ndarray
BINS = 20


def probabilities(logits: Array) -> Array:
    """Softmax (n k); classes masked with -inf get 0, rows without a finite logit are NaN."""
    logits = np.asarray(logits, float)
    top = logits.max(1, keepdims=True)
    with np.errstate(invalid="ignore"):
        weights = np.exp(logits - top)
        return weights / weights.sum(1, keepdims=True)


def confidence(prob: Array) -> Array:
    """The largest probability of each row (n k), in [0, 1]."""
    return np.asarray(prob, float).max(1)


def entropy(prob: Array) -> Array:
    """Entropy of each row (n k), in nats, from 0 to log k."""
    prob = np.asarray(prob, float)
    return -(prob * np.log(np.where(prob > 0, prob, 1))).sum(1)


def draw(prob: Mapping[str, Array], theme: Theme, *, height: int = 280) -> Chart:
    """Histograms of confidence and entropy from probabilities (n k) by model."""
    models = present(prob)
    sure = {m: confidence(prob[m]) for m in models}
    spread = {m: entropy(prob[m]) for m in models}
    most = float(np.log(max([p.shape[1] for p in prob.values()], default=2)))
    figure = grid(1, 2, horizontal_spacing=0.07)
    for column, (values, end) in enumerate(((sure, 1.0), (spread, most)), 1):
        for model in models:
            edges = np.linspace(0, end, BINS + 1)
            figure.add_trace(steps(values[model], edges, model, theme), 1, column)
    head(figure, "Confidence: largest probability", theme.ink, 1, 1)
    head(figure, f"Entropy, at most log k = {most:.2f} nats", theme.ink, 1, 2)
    key(figure, models, theme)
    dressed(figure, theme, height, margin={"t": 56}, legend={"y": 1.14})
    figure.update_yaxes(tickformat=".0%", rangemode="tozero", nticks=5)
    figure.update_yaxes(title="share of images", col=1)
    figure.update_xaxes(tickformat=".0%", title="confidence", range=[0, 1.005], col=1)
    figure.update_xaxes(title="entropy (nats)", range=[0, most * 1.005], col=2)
    title = headline(sure)
    alt = f"Histograms of confidence and of entropy on what was to be forgotten. {title}."
    return Chart(figure, title, alt, twin(sure, spread))


def steps(values: Array, edges: Array, model: str, theme: Theme) -> go.Scatter:
    """A histogram as an outline, so that three can lie on one another."""
    known = values[np.isfinite(values)]
    counts, _ = np.histogram(np.clip(known, edges[0], edges[-1]), edges)
    shares = counts / max(1, len(known))
    x = np.repeat(edges, 2)
    heights = np.concatenate([[0], np.repeat(shares, 2), [0]])
    said = [f"{NAMES[model]}: {100 * share:.1f} % of images" for share in heights]
    return go.Scatter(
        x=x.tolist(),
        y=heights.tolist(),
        mode="lines",
        fill="tozeroy",
        fillcolor=faded(theme.mark(model), 0.12),
        line={"color": theme.mark(model), "width": 2.2, "dash": DASHES[model]},
        customdata=said,
        hovertemplate="%{customdata}<extra></extra>",
        showlegend=False,
    )


def headline(sure: Mapping[str, Array]) -> str:
    """Median confidence by model."""
    medians = {m: np.nanmedian(v) for m, v in sure.items() if np.isfinite(v).any()}
    said = [f"{NAMES[m].lower()} {100 * v:.0f} %" for m, v in medians.items()]
    return f"Median confidence: {', '.join(said)}" if said else ""


def twin(sure: Mapping[str, Array], spread: Mapping[str, Array]) -> list[Row]:
    """The table twin, a row a model and image."""
    names = ("model", "image", "confidence (fraction)", "entropy (nats)")
    return table(
        names,
        [
            (model, row + 1, c, e)
            for model in sure
            for row, (c, e) in enumerate(zip(sure[model], spread[model], strict=True))
        ],
    )
