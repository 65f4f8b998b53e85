"""Ratio MIA: how well likelihood ratios to gold tell forgotten from unseen images, as an AUC."""

from dataclasses import dataclass
from typing import ClassVar, final

import torch
from torch import Tensor

from core.metrics.base import Metric, Unavailable
from core.metrics.outputs import Outputs
from core.metrics.spread import linearised
from core.metrics.unseen import against, log_likelihoods

A = 0.3
"""Of the line p_in = A p_out + (1 - A) by which the offline attack guesses what a model that was
trained on an image would say; the authors' default."""
LEAST = 10
"""Unseen images a half below which neither population nor non-members say anything."""


@final
@dataclass(frozen=True)
class RatioMia(Metric):
    """RMIA of Zarifzadeh et al. (2024, arxiv.org/abs/2312.03262), offline, gold as reference;
    called so here because `rmia` is POUR's attack on features.

    LR(x, z) = [p(x) / q(x)] / [p(z) / q(z)] with q = ((1 + a) p_gold + 1 - a) / 2, a = 0.3; the
    score of x is the share of a population z with LR > 1, and the AUC is of forgotten images
    (members) against unseen ones of the same classes (any, for an instance target). Unseen images
    are parted in two, one half to be judged and one to be z. 0.5 is guessing; gold's own value,
    each gold against the others, is the ideal.
    For a class that gold has never seen p_gold is near 0 and calibrates little.
    Differs: one gold at a time, then the mean of the AUCs, where the paper averages p over the
    references; `a` is not tuned.
    """

    unit: ClassVar = "fraction"
    low: ClassVar = 0.0
    high: ClassVar = 1.0
    ideal: ClassVar = "gold"
    against: ClassVar = "gold"

    def measure(self, model, reference, tap, seed):
        if reference is None:
            raise Unavailable("there is no gold to compare with")
        members, unseen = (ratios(model, reference, n) for n in ("forget", against(model)))
        others, population = unseen[::2].contiguous(), unseen[1::2].contiguous()
        if len(population) < LEAST:
            raise Unavailable(f"it needs {2 * LEAST} unseen images to compare with")
        value, sway = auc(*(scores(side, population) for side in (members, others)))
        return linearised(value, sway, seed, self.low, self.high)


def ratios(model: Outputs, gold: Outputs, name: str) -> Tensor:
    """p(x) / q(x) of each sample in order of ids (n)."""
    p, out = (log_likelihoods(one, name).exp() for one in (model, gold))
    return p / (((1 + A) * out + 1 - A) / 2)


def scores(asked: Tensor, population: Tensor) -> Tensor:
    """The share of the population over whose ratio that of `asked` is (n)."""
    return torch.searchsorted(population.sort().values, asked) / len(population)


def auc(members: Tensor, others: Tensor) -> tuple[float, dict[str, Tensor]]:
    """P(a member scores above another), a tie counting half, and how much each sample moves it."""
    below = beaten(members, others)
    above = 1 - beaten(others, members)
    value = float(below.mean())
    return value, {"forget": below - value, "unseen": above - value}


def beaten(asked: Tensor, rivals: Tensor) -> Tensor:
    """The share of `rivals` below each of `asked`, a tie counting half (n)."""
    known = rivals.sort().values
    sides = [torch.searchsorted(known, asked, right=right) for right in (False, True)]
    return (sides[0] + sides[1]).double() / (2 * len(rivals))
