"""rMIA: share of the forget set that a linear attacker takes for training images."""

from dataclasses import dataclass
from typing import ClassVar, final

import torch

from core.metrics.base import Metric, mean_of
from core.metrics.membership import attack


@final
@dataclass(frozen=True)
class Rmia(Metric):
    """Representation membership inference of POUR (2025, arxiv.org/abs/2511.19339).

    Logistic regression on features, five folds. Of the forgotten classes' training images as many
    are judged as there are unseen ones; for an instance target, forgotten images of every class,
    against the test set. Read it beside `rmia_fpr`: "always a member" scores 1.
    Differs: no class has more members than non-members, or the class alone would tell.
    """

    unit: ClassVar = "fraction"
    low: ClassVar = 0.0
    high: ClassVar = 1.0
    ideal: ClassVar = "gold"

    def measure(self, model, reference, tap, seed):
        hits = torch.from_numpy(attack(model, tap, seed).members)
        return mean_of({"forget": hits.double()}, seed)
