"""Angle of head rows: the mean angle between two rows of the head, seen from their centre."""

from dataclasses import dataclass
from typing import ClassVar, final

import torch

from core.geometry.collapse import Undefined, centred, mean_angle
from core.metrics.base import Measured, Metric, Unavailable


@final
@dataclass(frozen=True)
class AngleHead(Metric):
    """Mean pairwise angle of the head's rows minus their mean, which no prediction depends on.

    Under exact collapse it is arccos(-1 / (k - 1)): 96.38 degrees for ten classes. Weights are
    not a sample, so the interval has no width and n counts rows.
    """

    unit: ClassVar = "degrees"
    low: ClassVar = 0.0
    high: ClassVar = 180.0
    ideal: ClassVar = "gold"

    def measure(self, model, reference, tap, seed):
        if not torch.isfinite(model.head).all():
            raise Unavailable("the head is not finite")
        try:
            value = float(mean_angle(centred(model.head)))
        except Undefined as why:
            raise Unavailable(str(why)) from None
        return Measured(value, value, value, len(model.head))
