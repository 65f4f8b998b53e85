"""RUS, against gold: are the features gold's, on the forget set and on the retain set?"""

from dataclasses import dataclass
from typing import ClassVar, final

from core.metrics.base import Metric
from core.metrics.rus import rus


@final
@dataclass(frozen=True)
class RusGold(Metric):
    """RUS^(r) of POUR (2025, arxiv.org/abs/2511.19339).

    The harmonic mean of CKA_f^(r) and CKA_r^(r), on the training set. Gold
    itself reads 1.
    """

    unit: ClassVar = ""
    low: ClassVar = 0.0
    high: ClassVar = 1.0
    ideal: ClassVar = "high"
    against: ClassVar = "gold"

    def measure(self, model, reference, tap, seed):
        return rus(model, reference, tap, seed, away=False)
