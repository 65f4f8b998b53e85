"""Retained accuracy, external: share of the other images from elsewhere named rightly."""

from dataclasses import dataclass
from typing import ClassVar, final

from core.metrics.base import Metric
from core.metrics.external import external_accuracy


@final
@dataclass(frozen=True)
class ExternalRetainAccuracy(Metric):
    """On a test set from another source, never used for fitting."""

    unit: ClassVar = "fraction"
    low: ClassVar = 0.0
    high: ClassVar = 1.0
    ideal: ClassVar = "gold"

    def measure(self, model, reference, tap, seed):
        return external_accuracy(model, "external_retain", seed)
