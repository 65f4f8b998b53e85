"""CKA to gold, retain set: likeness of the features to gold's, images to be kept."""

from dataclasses import dataclass
from typing import ClassVar, final

from core.metrics.base import Metric
from core.metrics.similarity import likeness


@final
@dataclass(frozen=True)
class CkaRetainGold(Metric):
    """Linear CKA, centred (Kornblith et al. 2019), on a sample of the training set's retain set."""

    unit: ClassVar = ""
    low: ClassVar = 0.0
    high: ClassVar = 1.0
    ideal: ClassVar = "high"
    against: ClassVar = "gold"

    def measure(self, model, reference, tap, seed):
        return likeness(model, reference, tap, seed, "retain")
