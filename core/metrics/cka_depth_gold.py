"""CKA to gold, by depth: likeness of the features to gold's at each tap."""

from dataclasses import dataclass
from typing import ClassVar, final

from core.metrics.base import Metric
from core.metrics.similarity import likeness


@final
@dataclass(frozen=True)
class CkaDepthGold(Metric):
    """Linear CKA, centred, on the whole test set. A tap that the reference lacks is compared
    with its last one.
    """

    unit: ClassVar = ""
    low: ClassVar = 0.0
    high: ClassVar = 1.0
    ideal: ClassVar = "high"
    against: ClassVar = "gold"
    per_tap: ClassVar = True

    def measure(self, model, reference, tap, seed):
        return likeness(model, reference, tap, seed, "test_forget", "test_retain")
