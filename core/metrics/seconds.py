"""Time: how long the model took to make."""

import math
from dataclasses import dataclass
from typing import ClassVar, final

from core.metrics.base import Measured, Metric, Unavailable


@final
@dataclass(frozen=True)
class Seconds(Metric):
    """Wall clock of the method alone, without evaluation; one run, so it has no interval."""

    unit: ClassVar = "seconds"
    low: ClassVar = 0.0
    high: ClassVar = math.inf
    ideal: ClassVar = "low"

    def measure(self, model, reference, tap, seed):
        if model.seconds is None:
            raise Unavailable("nobody measured how long this model took")
        return Measured(model.seconds, model.seconds, model.seconds, 1)
