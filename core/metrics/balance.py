"""Balance: deletion and retention at once, where deletion means to misname."""

from dataclasses import dataclass
from typing import ClassVar, final

from core.metrics.aus import hits
from core.metrics.base import Metric
from core.metrics.spread import linearised


@final
@dataclass(frozen=True)
class Balance(Metric):
    """H = 2 A_r A_f / (A_r + A_f) of accuracy on the retain set and `misclassification`; 0 where
    both are. High for methods whose goal is to misname the images (Structguard); gold, which only
    has not seen them, reads low.
    """

    unit: ClassVar = ""
    low: ClassVar = 0.0
    high: ClassVar = 1.0
    ideal: ClassVar = "high"
    levels: ClassVar = frozenset({"instance"})

    def measure(self, model, reference, tap, seed):
        kept, gone = hits(model, "retain"), 1 - hits(model, "forget")
        a, b = float(kept.mean()), float(gone.mean())
        total = a + b
        slopes = (2 * (b / total) ** 2, 2 * (a / total) ** 2) if total else (0.0, 0.0)
        sway = {"retain": slopes[0] * (kept - a), "forget": slopes[1] * (gone - b)}
        value = 2 * a * b / total if total else 0.0
        return linearised(value, sway, seed, self.low, self.high)
