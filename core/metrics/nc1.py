"""NC1: how much samples vary within their class, against how far the classes lie apart."""

import math
from dataclasses import dataclass
from typing import ClassVar, final

from core.geometry.collapse import variability
from core.metrics.base import Metric
from core.metrics.collapsing import collapse


@final
@dataclass(frozen=True)
class NC1(Metric):
    """tr(S_W pinv(S_B)) / k on the training sets (Papyan et al. 2020,
    doi.org/10.1073/pnas.2015509117); 0 under exact collapse.

    Differs: classes count alike however many samples each has, and one without a sample is left
    out.
    """

    unit: ClassVar = ""
    low: ClassVar = 0.0
    high: ClassVar = math.inf
    ideal: ClassVar = "gold"

    def measure(self, model, reference, tap, seed):
        return collapse(model, tap, seed, variability, self.low, self.high)
