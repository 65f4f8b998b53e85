"""CKA to original, forget set, debiased: the same likeness, corrected for sample size."""

from dataclasses import dataclass
from typing import ClassVar, final

from core.metrics.base import Metric
from core.metrics.similarity import likeness


@final
@dataclass(frozen=True)
class CkaForgetOriginalDebiased(Metric):
    """Linear CKA with the unbiased HSIC (Song et al. 2012), on the training set's forget set.

    Few samples in many dimensions raise the plain CKA of unrelated features; this one stays
    near 0, and is undefined where the estimate is not positive.
    """

    unit: ClassVar = ""
    low: ClassVar = 0.0
    high: ClassVar = 1.0
    ideal: ClassVar = "gold"
    against: ClassVar = "original"

    def measure(self, model, reference, tap, seed):
        return likeness(model, reference, tap, seed, "forget", debiased=True)
