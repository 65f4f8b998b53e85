"""Misclassification: share of the forgotten images that are no longer named rightly."""

from dataclasses import dataclass
from typing import ClassVar, final

from core.metrics.aus import hits
from core.metrics.base import Metric, mean_of


@final
@dataclass(frozen=True)
class Misclassification(Metric):
    """A_f = 1 - accuracy on the forget set; a tie is a miss. It is the GOAL of methods that forget
    single images by misnaming them (instance-wise unlearning, Cha et al. 2024,
    arxiv.org/abs/2301.11578; Structguard), hence high is their ideal.

    Not gold's: a model that never saw the images still names most of them, and 1 is far past it.
    """

    unit: ClassVar = "fraction"
    low: ClassVar = 0.0
    high: ClassVar = 1.0
    ideal: ClassVar = "high"
    levels: ClassVar = frozenset({"instance"})

    def measure(self, model, reference, tap, seed):
        return mean_of({"forget": 1 - hits(model, "forget")}, seed)
