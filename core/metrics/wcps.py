"""WCPS: worst-case privacy score, whether any simple attack tells the model from gold."""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
import torch
from torch import Tensor

from core.metrics.base import Measured, Metric, Unavailable, percentiles, resampled
from core.metrics.outputs import Outputs

THRESHOLDS = 51
DELTA = 1e-5
FLOOR = 1e-10
"""Below which no error rate is taken for the logarithm."""


@final
@dataclass(frozen=True)
class Wcps(Metric):
    """1 - max (1 - FQ) over four attacks and 51 thresholds, on the forget set's answers: entropy at
    temperature 2 and log(p_max / (1 - p_max)), each read from either side. Unlearning-Comparator
    (Lee et al. 2025, arxiv.org/abs/2508.12730). 1: no attack tells the model from gold; 0: one
    tells them without an error.

    FQ = 2^-eps with eps = max(0, min(log((1 - d - FPR) / FNR), log((1 - d - FNR) / FPR))), d 1e-5;
    natural logarithm inside, base 2 outside, as published. It tells two models apart, not members
    from others. A worst case over 204 thresholds is below 1 even for two golds, by their seed and
    by chance: read it beside gold's own value. The interval holds the worst threshold fixed.
    Beyond twelve classes an entropy may lie above the published range and is cut to it.
    """

    unit: ClassVar = ""
    low: ClassVar = 0.0
    high: ClassVar = 1.0
    ideal: ClassVar = "high"
    against: ClassVar = "gold"
    levels: ClassVar = frozenset({"class"})

    def measure(self, model, reference, tap, seed):
        if reference is None:
            raise Unavailable("there is no gold to compare with")
        mine, theirs = (statistics(one, "forget") for one in (model, reference))
        found = [worst(m, t) for m, t in zip(mine, theirs, strict=True)]
        value, alarms, misses = min(found, key=lambda attack: attack[0])
        drawn = quality(resampled(alarms, seed), resampled(misses, seed))
        low, high = percentiles(drawn)
        return Measured(value, min(low, value), max(high, value), len(alarms))


def statistics(model: Outputs, name: str) -> list[np.ndarray]:
    """Both statistics (n each), scaled so that the published range is [0, 1].

    Raises:
        Unavailable: no sample, or answers that are not finite.
    """
    order = model.ids[name].argsort()
    logits = model.logits[name][order].double()
    if not len(logits):
        raise Unavailable(f"there is no sample in {name}")
    if not torch.isfinite(logits.logsumexp(1)).all():
        raise Unavailable("the answers are not finite")
    cut = [(entropy(logits / 2), 0.0, 2.5), (confidence(logits), -2.5, 10.0)]
    return [((s - low) / (high - low)).clamp(0, 1).numpy() for s, low, high in cut]


def entropy(logits: Tensor) -> Tensor:
    """Of the softmax, in nats (n)."""
    p = logits.softmax(1)
    return -torch.special.xlogy(p, p).sum(1)


def confidence(logits: Tensor) -> Tensor:
    """log(p_max / (1 - p_max)) (n)."""
    best, at = logits.max(1, keepdim=True)
    return best.squeeze(1) - logits.scatter(1, at, -torch.inf).logsumexp(1)


def worst(mine: np.ndarray, theirs: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """The lowest FQ over both sides and all thresholds, and the attack behind it: which of gold's
    answers it takes for the model's (n), and which of the model's for gold's (n)."""
    marks = np.linspace(0, 1, THRESHOLDS)[:, None]
    above = mine >= marks, theirs >= marks
    # Told by being above a threshold, or by being below.
    alarms = np.concatenate([above[1], ~above[1]]).astype(float)
    misses = np.concatenate([~above[0], above[0]]).astype(float)
    found = quality(alarms.mean(1), misses.mean(1))
    at = int(found.argmin())
    return float(found[at]), alarms[at], misses[at]


def quality(fpr: np.ndarray, fnr: np.ndarray) -> np.ndarray:
    """FQ of attacks with these error rates."""
    top = 1 - DELTA
    a, b = (np.clip(rate, FLOOR, top - FLOOR) for rate in (fpr, fnr))
    eps = np.minimum(np.log((top - a) / b), np.log((top - b) / a)).clip(0)
    found = np.where((fpr >= top) | (fnr >= top), 1.0, 2.0**-eps)
    return np.where((fpr == 0) & (fnr == 0), 0.0, found)
