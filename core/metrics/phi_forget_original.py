"""Change on the forget set: how far the features have moved from the original's (1 - CKA)."""

import dataclasses
from dataclasses import dataclass
from typing import ClassVar, final

from core.metrics.base import Measured, Metric
from core.metrics.similarity import likeness


@final
@dataclass(frozen=True)
class PhiForgetOriginal(Metric):
    """Phi_f^(o) = 1 - CKA_f^(o) of POUR (2025, arxiv.org/abs/2511.19339).

    It does not tell forgotten from destroyed: read it beside a CKA on the retain set.
    """

    unit: ClassVar = ""
    low: ClassVar = 0.0
    high: ClassVar = 1.0
    ideal: ClassVar = "gold"
    against: ClassVar = "original"

    def measure(self, model, reference, tap, seed):
        return away(likeness(model, reference, tap, seed, "forget"))


def away(cka: Measured) -> Measured:
    """One minus the reading."""
    parts = None if cka.parts is None else {name: 1 - p for name, p in cka.parts.items()}
    return dataclasses.replace(
        cka, value=1 - cka.value, low=1 - cka.high, high=1 - cka.low, parts=parts
    )
