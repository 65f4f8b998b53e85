"""Fisher separability: distance between forgotten and other unseen images over their spread."""

import math
from dataclasses import dataclass
from typing import ClassVar, final

import torch
from torch import Tensor

from core.metrics.base import Metric, Unavailable
from core.metrics.similarity import rows
from core.metrics.spread import linearised


def fisher(forget: Tensor, retain: Tensor) -> tuple[float, Tensor, Tensor]:
    """|mean - mean|^2 / (trace + trace) of two sets (n d, m d), and how much each row moves it.

    Raises:
        Unavailable: a set has one row, or nothing varies, or features are not finite.
    """
    if min(len(forget), len(retain)) < 2:
        raise Unavailable("one sample has no spread")
    if not (torch.isfinite(forget).all() and torch.isfinite(retain).all()):
        raise Unavailable("features are not finite")
    forget, retain = forget.double(), retain.double()
    f, r = forget - forget.mean(0), retain - retain.mean(0)
    spread = [z.square().sum(1) for z in (f, r)]
    total = sum(float(s.sum()) / (len(s) - 1) for s in spread)
    size = float(forget.square().sum(1).mean() + retain.square().sum(1).mean())
    if total <= 1e-14 * size:
        raise Unavailable("features are constant")
    between = forget.mean(0) - retain.mean(0)
    value = float(between @ between) / total
    sway = [
        (sign * 2 * (z @ between) - value * (s - s.mean())) / total
        for sign, z, s in ((1, f, spread[0]), (-1, r, spread[1]))
    ]
    return value, sway[0], sway[1]


@final
@dataclass(frozen=True)
class Fisher(Metric):
    """Fisher's ratio on the test set, as in Mirage (2026, arxiv.org/abs/2605.20282).

    Differs: the spread is the trace of the covariance (sum of the features' variances) however
    few the samples, where the paper's code takes one variance over all entries if d > n.
    """

    unit: ClassVar = ""
    low: ClassVar = 0.0
    high: ClassVar = math.inf
    ideal: ClassVar = "gold"
    per_tap: ClassVar = True
    levels: ClassVar = frozenset({"class", "subclass"})

    def measure(self, model, reference, tap, seed):
        sets = ("test_forget", "test_retain")
        value, *sway = fisher(*(rows(model, tap, name) for name in sets))
        return linearised(value, dict(zip(sets, sway, strict=True)), seed, self.low, self.high)
