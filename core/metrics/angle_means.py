"""Angle of class means: the mean angle between two classes, seen from the centre of all."""

from dataclasses import dataclass
from typing import ClassVar, final

from core.geometry.collapse import centred, mean_angle
from core.metrics.base import Metric
from core.metrics.collapsing import collapse


@final
@dataclass(frozen=True)
class AngleMeans(Metric):
    """Mean pairwise angle of the centred class means, on the training sets.

    Under exact collapse it is arccos(-1 / (k - 1)): 96.38 degrees for ten classes.
    """

    unit: ClassVar = "degrees"
    low: ClassVar = 0.0
    high: ClassVar = 180.0
    ideal: ClassVar = "gold"

    def measure(self, model, reference, tap, seed):
        def quantity(z, found):
            return mean_angle(centred(found.means))

        return collapse(model, tap, seed, quantity, self.low, self.high)
