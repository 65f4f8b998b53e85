"""CKA to original, by depth: likeness of the features to the original's at each tap."""

from dataclasses import dataclass
from typing import ClassVar, final

from core.metrics.base import Metric
from core.metrics.similarity import likeness


@final
@dataclass(frozen=True)
class CkaDepthOriginal(Metric):
    """Linear CKA, centred, on the whole test set. A tap that the reference lacks is compared
    with its last one.
    """

    unit: ClassVar = ""
    low: ClassVar = 0.0
    high: ClassVar = 1.0
    ideal: ClassVar = "gold"
    against: ClassVar = "original"
    per_tap: ClassVar = True

    def measure(self, model, reference, tap, seed):
        return likeness(model, reference, tap, seed, "test_forget", "test_retain")
