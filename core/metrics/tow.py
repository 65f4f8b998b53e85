"""ToW: tug of war, how near all three accuracies are to gold's at once."""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from core.metrics.base import Metric
from core.metrics.differing import accuracies, combined


def tow(gaps: np.ndarray) -> np.ndarray:
    """Product over the first axis of 1 - |gap|."""
    return (1 - np.abs(gaps)).prod(0)


@final
@dataclass(frozen=True)
class Tow(Metric):
    """RUM (Zhao et al. 2024, arxiv.org/abs/2406.01257): product of 1 - |accuracy - gold's accuracy|
    over forget set, retain set and retained test images; 1 is gold.

    Accuracies alone: a masked class reads as a forgotten one.
    Differs: for a class target the test accuracy is that of the retained classes.
    """

    unit: ClassVar = ""
    low: ClassVar = 0.0
    high: ClassVar = 1.0
    ideal: ClassVar = "high"
    against: ClassVar = "gold"

    def measure(self, model, reference, tap, seed):
        return combined(accuracies(model, reference), tow, seed)
