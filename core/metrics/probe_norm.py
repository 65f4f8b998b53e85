"""Norm probe: balanced accuracy of a probe that sees only distances to the two sides' means."""

from dataclasses import dataclass
from typing import ClassVar, final

import torch
from torch import Tensor

from core.metrics.base import Metric
from core.metrics.probing import Trials, balanced, linear, rescale


def distances(trials: Trials) -> tuple[Tensor, Tensor]:
    """Squared distance to the mean of either side, and the norm, of each row (s n 3, s m 3).

    A training row's distance is to the mean of the others of its side, or it would look nearer
    than a row that is new.
    """
    forget, rest = trials.sides
    centres = [part.mean(1, keepdim=True) for part in trials.train.split([forget, rest], 1)]

    def seen(x: Tensor) -> Tensor:
        squares = [(x - centre).square().sum(2) for centre in centres]
        return torch.stack([*squares, x.norm(dim=2)], 2)

    train = seen(trials.train)
    train[:, :forget, 0] *= (forget / (forget - 1)) ** 2
    train[:, forget:, 1] *= (rest / (rest - 1)) ** 2
    return rescale(train, seen(trials.test))


def norm(trials: Trials) -> Tensor:
    """Logistic regression on `distances`: a quadratic rule with five free numbers or so."""
    return linear(Trials(*distances(trials), trials.y, trials.seed))


@final
@dataclass(frozen=True)
class ProbeNorm(Metric):
    """Forget class against the rest on the test set, by logistic regression on the squared
    distances to the two sides' means and on the norm; splits and score as for the linear probe.

    A projection that moves the class to the centre of the others blinds a linear probe; the class
    is then the one nearest to the centre, which this probe reads.
    """

    unit: ClassVar = "fraction"
    low: ClassVar = 0.0
    high: ClassVar = 1.0
    ideal: ClassVar = "gold"
    per_tap: ClassVar = True
    levels: ClassVar = frozenset({"class", "subclass"})

    def measure(self, model, reference, tap, seed):
        return balanced(model, tap, seed, norm)
