"""Retained accuracy, test: share of unseen images to be kept that the model names rightly."""

from dataclasses import dataclass
from typing import ClassVar, final

from core.metrics.accuracy import accuracy
from core.metrics.base import Metric


@final
@dataclass(frozen=True)
class RetainAccuracyTest(Metric):
    """Argmax over all k logits; a tie is a miss."""

    unit: ClassVar = "fraction"
    low: ClassVar = 0.0
    high: ClassVar = 1.0
    ideal: ClassVar = "gold"

    def measure(self, model, reference, tap, seed):
        return accuracy(model, "test_retain", seed)
