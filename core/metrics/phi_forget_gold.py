"""CKA to gold, forget set: likeness of the features to gold's on what was to go."""

from dataclasses import dataclass
from typing import ClassVar, final

from core.metrics.base import Metric
from core.metrics.similarity import likeness


@final
@dataclass(frozen=True)
class PhiForgetGold(Metric):
    """Phi_f^(r) = CKA_f^(r) of POUR (2025, arxiv.org/abs/2511.19339), on the
    training set's forget set.

    A single class has little spread between classes, so this compares structure within it.
    """

    unit: ClassVar = ""
    low: ClassVar = 0.0
    high: ClassVar = 1.0
    ideal: ClassVar = "high"
    against: ClassVar = "gold"

    def measure(self, model, reference, tap, seed):
        return likeness(model, reference, tap, seed, "forget")
