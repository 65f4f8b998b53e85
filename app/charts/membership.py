"""Membership: can an attack tell trained-on images from unseen ones, and at which threshold?"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go

from app.charts import Chart, Row, present
from app.charts.panels import grid, head, upright
from app.charts.table import table
from app.charts.text import amount
from app.charts.theme import NAMES, Theme, dressed, faded

Array = np.ndarray
BINS = 28
LIMIT = 12.0
"""Log-odds beyond which a float32 softmax says nothing."""


@dataclass(frozen=True)
class Rates:
    """An attack that says "member" at a score of `threshold` or more."""

    threshold: float
    hits: int
    """Members called members."""
    alarms: int
    """Unseen images called members."""
    members: int
    others: int

    @property
    def tpr(self) -> float:
        """True-positive rate; NaN without members."""
        return self.hits / self.members if self.members else float("nan")

    @property
    def fpr(self) -> float:
        """False-positive rate; NaN without unseen images."""
        return self.alarms / self.others if self.others else float("nan")

    @property
    def accuracy(self) -> float:
        """Balanced accuracy; one half is a guess."""
        return (self.tpr + 1 - self.fpr) / 2


def scores(logits: Array, y: Array) -> Array:
    """Log-odds of the true class (n), cut to +-LIMIT: the loss attack's order, spread out.

    Yeom et al. 2018, arxiv.org/abs/1709.01604, on the scale of Carlini et al. 2022,
    arxiv.org/abs/2112.03570. Classes masked with -inf get -LIMIT.
    """
    logits = np.asarray(logits, float)
    rows = np.arange(len(logits))
    mine = logits[rows, y]
    rest = logits.copy()
    rest[rows, y] = -np.inf
    top = rest.max(1, initial=-np.inf)
    base = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        others = base + np.log(np.exp(rest - base[:, None]).sum(1))
        odds = np.where(np.isneginf(mine), -LIMIT, mine - others)
    return np.clip(odds, -LIMIT, LIMIT)


def rates(members: Array, others: Array, threshold: float) -> Rates:
    """What the attack gets right and wrong at `threshold`."""
    return Rates(
        threshold,
        int((members >= threshold).sum()),
        int((others >= threshold).sum()),
        len(members),
        len(others),
    )


def best_threshold(members: Array, others: Array) -> float:
    """The score at which the attack's balanced accuracy is greatest (the lowest such)."""
    tries = np.unique(np.concatenate([members, others]))
    if not len(members) or not len(others):
        return 0.0
    low, high = np.sort(others), np.sort(members)
    hits = 1 - np.searchsorted(high, tries) / len(high)
    alarms = 1 - np.searchsorted(low, tries) / len(low)
    return float(tries[int(np.argmax(hits - alarms))])


def limits(scored: Mapping[str, tuple[Array, Array]]) -> tuple[float, float]:
    """Range of all scores, for the threshold's slider."""
    every = np.concatenate([a for pair in scored.values() for a in pair] or [np.zeros(1)])
    every = every if len(every) else np.zeros(1)
    return float(np.floor(every.min())), float(np.ceil(every.max() + 1e-9))


def draw(
    scored: Mapping[str, tuple[Array, Array]],
    threshold: float,
    theme: Theme,
    *,
    label: str = "log-odds of the true class",
    height: int = 290,
) -> Chart:
    """A panel a model: scores of members (filled) and of unseen images (outlined)."""
    models = present(scored)
    figure = grid(1, len(models), shared_xaxes="all", shared_yaxes="all", horizontal_spacing=0.03)
    edges = np.linspace(*limits(scored), BINS + 1)
    for column, model in enumerate(models, 1):
        for trace in histograms(*scored[model], edges, model, theme, column == 1):
            figure.add_trace(trace, 1, column)
        now = rates(*scored[model], threshold)
        said = f"{NAMES[model]}: attack {amount(now.accuracy, 'fraction')}"
        head(figure, said, theme.text(model), 1, column)
        rule = {"color": theme.ink, "width": 1.6, "dash": "dash"}
        upright(figure, threshold, (1, column), rule)
    dressed(
        figure, theme, height, margin={"t": 54}, legend={"y": 1.13}, barmode="overlay", bargap=0
    )
    figure.update_xaxes(title=label, range=[float(edges[0]), float(edges[-1])])
    figure.update_yaxes(tickformat=".0%", range=[0, 1.08 * tallest(figure)], nticks=5)
    figure.update_yaxes(title="share of images", col=1)
    title = headline(scored, threshold)
    alt = f"Scores of a membership attack on members and on unseen images. {title}."
    return Chart(figure, title, alt, twin(scored))


def tallest(figure: go.Figure) -> float:
    """Height of the highest bar: matching axes do not find it themselves."""
    bars: list[Any] = list(figure.select_traces())
    return max([0.01, *(max(bar.y, default=0) for bar in bars)])


def histograms(
    members: Array, others: Array, edges: Array, model: str, theme: Theme, first: bool
) -> list[go.Bar]:
    """Members filled in the model's colour, unseen images hatched in the text's."""
    found = []
    for name, values in (("members (trained on)", members), ("unseen", others)):
        unseen = name == "unseen"
        counts, _ = np.histogram(np.clip(values, edges[0], edges[-1]), edges)
        share = counts / max(1, len(values))
        fill = "rgba(0,0,0,0)" if unseen else faded(theme.mark(model), 0.55)
        pattern = {"shape": "/", "size": 5, "fgcolor": theme.muted, "solidity": 0.25}
        found.append(
            go.Bar(
                x=((edges[:-1] + edges[1:]) / 2).tolist(),
                y=share.tolist(),
                width=float(edges[1] - edges[0]),
                name=name,
                showlegend=first,
                marker={
                    "color": fill,
                    "line": {"color": theme.muted if unseen else theme.edge(model), "width": 1},
                    "pattern": pattern if unseen else {},
                },
                customdata=[f"{100 * s:.1f} % of {len(values)} {name}" for s in share],
                hovertemplate="%{customdata}<extra></extra>",
            )
        )
    return found


def headline(scored: Mapping[str, tuple[Array, Array]], threshold: float) -> str:
    """What the attack gets right at the threshold, by model; one half is a guess."""
    at = [(NAMES[m], rates(*scored[m], threshold).accuracy) for m in present(scored)]
    said = [f"{name.lower()} {amount(share, 'fraction')}" for name, share in at]
    return f"The attack is right on {', '.join(said)} (a guess: 50 %)" if said else ""


def twin(scored: Mapping[str, tuple[Array, Array]]) -> list[Row]:
    """The table twin, a row a score."""
    lines = [
        (model, kind, float(score))
        for model in present(scored)
        for kind, values in zip(("member", "unseen"), scored[model], strict=True)
        for score in values
    ]
    return table(("model", "image", "score"), lines)
