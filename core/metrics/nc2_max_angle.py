"""NC2 widest angles: how far the cosines between class means are from -1 / (k - 1)."""

from dataclasses import dataclass
from typing import ClassVar, final

from core.geometry.collapse import centred, max_angle
from core.metrics.base import Metric
from core.metrics.collapsing import collapse


@final
@dataclass(frozen=True)
class NC2MaxAngle(Metric):
    """Mean of |cosine + 1 / (k - 1)| over all pairs of centred class means, on the training sets
    (Papyan et al. 2020, doi.org/10.1073/pnas.2015509117); 0 under exact collapse.
    """

    unit: ClassVar = ""
    low: ClassVar = 0.0
    high: ClassVar = 2.0
    ideal: ClassVar = "gold"

    def measure(self, model, reference, tap, seed):
        def quantity(z, found):
            return max_angle(centred(found.means))

        return collapse(model, tap, seed, quantity, self.low, self.high)
