"""NC2 equal norms: how unequal the distances of the class means from their centre are."""

import math
from dataclasses import dataclass
from typing import ClassVar, final

from core.geometry.collapse import centred, equinorm
from core.metrics.base import Metric
from core.metrics.collapsing import collapse


@final
@dataclass(frozen=True)
class NC2Equinorm(Metric):
    """Standard deviation over mean of the centred class means' lengths, on the training sets
    (Papyan et al. 2020, doi.org/10.1073/pnas.2015509117); 0 under exact collapse.
    """

    unit: ClassVar = "ratio"
    low: ClassVar = 0.0
    high: ClassVar = math.inf
    ideal: ClassVar = "gold"

    def measure(self, model, reference, tap, seed):
        def quantity(z, found):
            return equinorm(centred(found.means))

        return collapse(model, tap, seed, quantity, self.low, self.high)
