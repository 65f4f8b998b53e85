"""Relative time: how long the model took to make, as a share of retraining."""

import math
from dataclasses import dataclass
from typing import ClassVar, final

from core.metrics.base import Measured, Metric, Unavailable


@final
@dataclass(frozen=True)
class Rte(Metric):
    """RTE of Dine and Furon (2026, arxiv.org/abs/2605.10680): seconds over gold's seconds.

    Some papers print the reciprocal under the same name.
    """

    unit: ClassVar = "ratio"
    low: ClassVar = 0.0
    high: ClassVar = math.inf
    ideal: ClassVar = "low"
    against: ClassVar = "gold"

    def measure(self, model, reference, tap, seed):
        if reference is None or model.seconds is None or not reference.seconds:
            raise Unavailable("nobody measured how long the model and gold took")
        share = model.seconds / reference.seconds
        return Measured(share, share, share, 1)
