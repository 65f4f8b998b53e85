"""Forget accuracy, external: share of these classes' images from elsewhere named rightly."""

from dataclasses import dataclass
from typing import ClassVar, final

from core.metrics.base import Metric
from core.metrics.external import external_accuracy


@final
@dataclass(frozen=True)
class ExternalForgetAccuracy(Metric):
    """The external test set was never used for fitting: methods that only mask lose most there."""

    unit: ClassVar = "fraction"
    low: ClassVar = 0.0
    high: ClassVar = 1.0
    ideal: ClassVar = "gold"
    levels: ClassVar = frozenset({"class", "subclass"})

    def measure(self, model, reference, tap, seed):
        return external_accuracy(model, "external_forget", seed)
