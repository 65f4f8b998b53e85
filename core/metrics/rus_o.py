"""RUS, against original: have features moved on the forget set, and stayed on the retain set?"""

from dataclasses import dataclass
from typing import ClassVar, final

from core.metrics.base import Metric
from core.metrics.rus import rus


@final
@dataclass(frozen=True)
class RusOriginal(Metric):
    """RUS^(o) of POUR (2025, arxiv.org/abs/2511.19339).

    The harmonic mean of 1 - CKA_f^(o) and CKA_r^(o), on the training set. The
    original itself reads 0. Phi alone cannot tell forgotten from destroyed.
    """

    unit: ClassVar = ""
    low: ClassVar = 0.0
    high: ClassVar = 1.0
    ideal: ClassVar = "gold"
    against: ClassVar = "original"

    def measure(self, model, reference, tap, seed):
        return rus(model, reference, tap, seed, away=True)
