"""KL to gold, test: how far the answers are from gold's, on unseen images."""

from dataclasses import dataclass
from typing import ClassVar, final

from core.metrics.base import Metric
from core.metrics.divergence import HIGHEST, divergence


@final
@dataclass(frozen=True)
class KlTest(Metric):
    """KL(gold || model), mean over samples, as in Dine and Furon (2026, arxiv.org/abs/2605.10680).

    Differs: probabilities are kept above 1e-10, so that a masked class has a finite divergence.
    """

    unit: ClassVar = "nats"
    low: ClassVar = 0.0
    high: ClassVar = HIGHEST
    ideal: ClassVar = "low"
    against: ClassVar = "gold"

    def measure(self, model, reference, tap, seed):
        return divergence(model, reference, seed, "test_forget", "test_retain")
