"""Agreement with gold, test set: share of unseen images that both name alike."""

from dataclasses import dataclass
from typing import ClassVar, final

from core.metrics.agreement import agreement
from core.metrics.base import Metric


@final
@dataclass(frozen=True)
class AgreementTest(Metric):
    """As `agreement_forget`, on all test images, forgotten classes and others."""

    unit: ClassVar = "fraction"
    low: ClassVar = 0.0
    high: ClassVar = 1.0
    ideal: ClassVar = "high"
    against: ClassVar = "gold"

    def measure(self, model, reference, tap, seed):
        return agreement(model, reference, seed, "test_forget", "test_retain")
