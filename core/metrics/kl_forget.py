"""KL to gold, forget set: how far the answers are from gold's, on what was to go."""

from dataclasses import dataclass
from typing import ClassVar, final

from core.metrics.base import Metric
from core.metrics.divergence import HIGHEST, divergence


@final
@dataclass(frozen=True)
class KlForget(Metric):
    """KL(gold || model), mean over samples, as in Dine and Furon (2026, arxiv.org/abs/2605.10680).

    Differs: probabilities are kept above 1e-10, so that a masked class has a finite divergence.
    """

    unit: ClassVar = "nats"
    low: ClassVar = 0.0
    high: ClassVar = HIGHEST
    ideal: ClassVar = "low"
    against: ClassVar = "gold"

    def measure(self, model, reference, tap, seed):
        return divergence(model, reference, seed, "forget")
