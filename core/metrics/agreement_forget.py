"""Agreement with gold, forget set: share of what was to go that both name alike."""

from dataclasses import dataclass
from typing import ClassVar, final

from core.metrics.agreement import agreement
from core.metrics.base import Metric


@final
@dataclass(frozen=True)
class AgreementForget(Metric):
    """Prediction agreement: equal argmax over all k logits, on the forget set's training images.

    Right or wrong plays no part: what counts is to be wrong as gold is. Two golds agree on less
    than everything; read it beside their value.
    """

    unit: ClassVar = "fraction"
    low: ClassVar = 0.0
    high: ClassVar = 1.0
    ideal: ClassVar = "high"
    against: ClassVar = "gold"

    def measure(self, model, reference, tap, seed):
        return agreement(model, reference, seed, "forget")
