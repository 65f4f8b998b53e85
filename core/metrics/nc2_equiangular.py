"""NC2 equal angles: how much the cosines between class means vary."""

from dataclasses import dataclass
from typing import ClassVar, final

from core.geometry.collapse import centred, equiangular
from core.metrics.base import Metric
from core.metrics.collapsing import collapse


@final
@dataclass(frozen=True)
class NC2Equiangular(Metric):
    """Standard deviation of the cosines between all pairs of centred class means, on the training
    sets (Papyan et al. 2020, doi.org/10.1073/pnas.2015509117); 0 under exact collapse.
    """

    unit: ClassVar = ""
    low: ClassVar = 0.0
    high: ClassVar = 1.0
    ideal: ClassVar = "gold"

    def measure(self, model, reference, tap, seed):
        def quantity(z, found):
            return equiangular(centred(found.means))

        return collapse(model, tap, seed, quantity, self.low, self.high)
