"""Forget accuracy, test: share of unseen images of the forget set's classes that it still names."""

from dataclasses import dataclass
from typing import ClassVar, final

from core.metrics.accuracy import accuracy
from core.metrics.base import Metric


@final
@dataclass(frozen=True)
class ForgetAccuracyTest(Metric):
    """Argmax over all k logits; a tie is a miss."""

    unit: ClassVar = "fraction"
    low: ClassVar = 0.0
    high: ClassVar = 1.0
    ideal: ClassVar = "gold"
    levels: ClassVar = frozenset({"class", "subclass"})

    def measure(self, model, reference, tap, seed):
        return accuracy(model, "test_forget", seed)
