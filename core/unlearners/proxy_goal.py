"""Proxy goal: from a proxy to what the network is to say, and the network taught to say it."""

import math
from dataclasses import replace

import torch
from torch import Tensor

from core.data.split import Split
from core.losses import kl
from core.models.classifier import Classifier
from core.optim import OnStep
from core.unlearners.adam import adapt
from core.unlearners.proxy_features import Rows
from core.unlearners.proxy_fit import lifted, mixed, naive
from core.unlearners.proxy_signal import advantage, dirac, excess, largest_step, signal, tilted

__support__ = True

FITS = {
    "lda": (naive, "pooled"),
    "qda": (naive, "diagonal"),
    "lda_mix": (mixed, "pooled"),
    "qda_mix": (mixed, "diagonal"),
    "lda_2c": (lifted, "pooled"),
}
DECAY, CLOSE = 0.95, 1e-6
"""Of the step size, each pass; nats by which a batch may be off without being stepped on."""


def aim(seen: Rows, proxy: str, covariance: str, limit: float) -> tuple[Tensor | None, str]:
    """What the network is to say of every row (n k), and a sentence; None if not admissible.

    `proxy` is one of `FITS`, or `dir_2c`; `covariance` is QDA's, `diagonal` or `full`.
    """
    if proxy == "dir_2c":
        return dirac(seen.log_p, seen.y, seen.gone), ""
    fit, shape = FITS[proxy]
    shape = covariance if shape == "diagonal" else shape
    delta = signal(*fit(seen.z, seen.y, seen.gone, seen.log_p.shape[1], shape))
    eta = largest_step(seen.log_p, delta, limit)
    if not eta:
        return None, (
            "Not admissible: the first step along the proxy's signal leads away, so the model is"
            " left untouched."
        )
    kept = ~seen.gone
    gain = advantage(delta[kept], seen.y[kept])
    over = excess(seen.log_p[kept], delta[kept], eta)
    nearer = "nearer to" if eta * gain > over else "farther from"
    return tilted(seen.log_p, delta, eta), (
        f"Step {eta:.3g} along the signal; on the retain set A = {gain:.2g} and h = {over:.2g}"
        f" nats, by which the target is {nearer} the retained labels than the original."
    )


def distil(
    model: Classifier,
    split: Split,
    goal: Tensor,
    *,
    both: bool,
    lr: float,
    epochs: int,
    batch: int,
    rng: torch.Generator,
    on_step: OnStep,
) -> None:
    """Minimise KL(goal || model), each set weighing as much as it is large, or the forget set's.

    `goal` (n k) has the forgotten rows first. A pass is one over the forget set; each of its
    batches comes with one of the retain set, if `both` teach.
    """
    n = len(split.forget)
    share = n / len(goal)
    # Row numbers for labels, by which a batch finds its targets.
    numbers = torch.arange(len(goal), device=goal.device).split([n, len(goal) - n])
    forget, retain = (
        replace(part, y=own).batches(batch, rng)
        for part, own in zip((split.forget, split.retain), numbers, strict=True)
    )

    def loss() -> Tensor:
        f = next(forget)
        lost = kl(goal[f.y], model(f.x))
        if not both:
            return lost
        r = next(retain)
        return share * lost + (1 - share) * kl(goal[r.y], model(r.x))

    every = math.ceil(n / batch)
    adapt(
        model,
        loss,
        steps=epochs * every,
        lr=lr,
        decay=DECAY,
        every=every,
        enough=CLOSE,
        on_step=on_step,
    )
