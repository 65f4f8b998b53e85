"""k-NN probe: balanced accuracy of a vote of the five nearest samples in feature space."""

from dataclasses import dataclass
from typing import ClassVar, final

import torch
from torch import Tensor

from core.metrics.base import Metric
from core.metrics.probing import Trials, balanced

NEIGHBOURS = 5


def knn(trials: Trials) -> Tensor:
    """The share of a row's nearest training rows that are of the forget class, less one half."""
    scores = []
    for train, test in zip(trials.train.float(), trials.test.float(), strict=True):
        near = torch.cdist(test, train).topk(NEIGHBOURS, largest=False, sorted=False).indices
        scores.append(trials.y[near].mean(1) - 0.5)
    return torch.stack(scores)


@final
@dataclass(frozen=True)
class ProbeKNN(Metric):
    """Forget class against the rest on the test set, by a vote of the five nearest rows; splits,
    standardisation and score as for the linear probe. It assumes no shape of the class.
    """

    unit: ClassVar = "fraction"
    low: ClassVar = 0.0
    high: ClassVar = 1.0
    ideal: ClassVar = "gold"
    per_tap: ClassVar = True
    levels: ClassVar = frozenset({"class", "subclass"})

    def measure(self, model, reference, tap, seed):
        return balanced(model, tap, seed, knn)
