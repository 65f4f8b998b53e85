"""Metric: one reading of a model, with its interval, or the reason why there is none."""

import abc
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Literal

import numpy as np
import torch
from torch import Tensor

from core.data.targets import LEVELS, Level
from core.metrics.outputs import Outputs

__support__ = True

DRAWS = 1000
"""Bootstrap draws behind an interval."""
SHARED = 4000
"""Most samples for which resamples are kept (16 MB at this size)."""


class Unavailable(ValueError):
    """A reading that cannot be taken; the text says why, to follow "not available, because"."""


@dataclass(frozen=True, eq=False)
class Measured:
    """A value with its 95 % interval over samples and the number of samples behind it.

    Where the value is the mean over groups of the mean over a group's samples (an accuracy, a
    balanced accuracy, a mean divergence), `parts` holds each sample's contribution by group, in
    row order, so that two models can be compared sample by sample.
    """

    value: float
    low: float
    high: float
    n: int
    parts: Mapping[str, Tensor] | None = None


@dataclass(frozen=True)
class Metric(abc.ABC):
    """A reading; subclasses are stateless and write `measure`."""

    unit: ClassVar[str]
    """`fraction`, `nats`, `degrees`, `seconds`, `ratio`; empty for a pure number."""
    low: ClassVar[float]
    high: ClassVar[float]
    ideal: ClassVar[Literal["low", "high", "gold"]]
    """What is good: in unlearning mostly only nearness to gold."""
    against: ClassVar[Literal["original", "gold"] | None] = None
    """Which other model `measure` needs as `reference`."""
    per_tap: ClassVar[bool] = False
    """Whether it is read at every tap (at the last one otherwise); such a reading depends on the
    features there and the labels alone, so that equal features need not be read twice."""
    levels: ClassVar[frozenset[Level]] = LEVELS

    @abc.abstractmethod
    def measure(self, model: Outputs, reference: Outputs | None, tap: str, seed: int) -> Measured:
        """The reading of `model` at `tap`.

        Raises:
            Unavailable: it cannot be taken, and why.
        """


def mean_of(parts: Mapping[str, Tensor], seed: int) -> Measured:
    """The mean over groups of group means, with its interval.

    For one group of hits and misses the interval is Wilson's (it does not shrink to nothing at
    0 or 1); otherwise a percentile bootstrap within the groups.

    Raises:
        Unavailable: a group is empty or holds values that are not finite.
    """
    for name, values in parts.items():
        if not len(values):
            raise Unavailable(f"there is no sample in {name.replace('_', ' ')}")
        if not torch.isfinite(values).all():
            raise Unavailable(f"some values in {name.replace('_', ' ')} are not finite")
    groups = [v.double() for v in parts.values()]
    value = float(torch.stack([g.mean() for g in groups]).mean())
    n = sum(len(g) for g in groups)
    if len(groups) == 1 and bool(((groups[0] == 0) | (groups[0] == 1)).all()):
        low, high = wilson(value, n)
    else:
        low, high = percentiles(draws(groups, seed))
    return Measured(value, low, high, n, parts)


def gap_of(model: Measured, golds: list[Measured], seed: int) -> tuple[float, float, float]:
    """Model minus mean gold, and the 95 % interval of that gap: sample by sample where possible."""
    gap = model.value - float(np.mean([g.value for g in golds]))
    paired = [g.parts for g in golds]
    if model.parts is None or any(p is None for p in paired):
        halves = [(m.high - m.low) / 2 for m in (model, golds[0])]
        half = math.hypot(*halves)
        return gap, gap - half, gap + half
    diffs = []
    for name, mine in model.parts.items():
        theirs = torch.stack([p[name].double() for p in paired if p is not None]).mean(0)
        diffs.append(mine.double() - theirs)
    low, high = percentiles(draws(diffs, seed))
    return gap, low, high


def draws(groups: list[Tensor], seed: int) -> np.ndarray:
    """Bootstrap draws of the mean over groups of group means (DRAWS)."""
    total = np.zeros(DRAWS)
    for place, group in enumerate(groups):
        # A seed of its own for each group: equal sizes must not mean equal resamples.
        own = len(groups) * seed + place
        total += resampled(group.double().numpy(), own)
    return total / len(groups)


def resampled(values: np.ndarray, seed: int) -> np.ndarray:
    """Means of DRAWS resamples of `values` (n)."""
    n = len(values)
    if n <= SHARED:
        # About their mean, single precision is enough, and half the memory to read.
        middle = values.mean()
        means = middle + counts(n, seed) @ (values - middle).astype(np.float32) / n
        return means.clip(values.min(), values.max())
    rng = np.random.default_rng(seed)
    return values[rng.integers(n, size=(DRAWS, n), dtype=np.int32)].mean(1)


@lru_cache(maxsize=32)
def counts(n: int, seed: int) -> np.ndarray:
    """How often each of `n` samples is in each resample (DRAWS n).

    Shared by all readings on so many samples: to draw costs more than all the rest.
    """
    rng = np.random.default_rng(seed)
    drawn = (np.bincount(rng.integers(n, size=n), minlength=n) for _ in range(DRAWS))
    return np.stack(list(drawn)).astype(np.float32)


def percentiles(values: np.ndarray) -> tuple[float, float]:
    """The middle 95 %."""
    low, high = np.percentile(values, [2.5, 97.5])
    return float(low), float(high)


def wilson(p: float, n: int) -> tuple[float, float]:
    """Wilson's 95 % interval for a share `p` of `n` (Wilson 1927, doi.org/10.2307/2276774)."""
    z = 1.959964
    middle = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return max(0.0, middle - half), min(1.0, middle + half)
