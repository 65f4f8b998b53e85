"""NC3: how far the head's rows are from pointing where the class means lie."""

from dataclasses import dataclass
from typing import ClassVar, final

from core.geometry.collapse import duality
from core.metrics.base import Metric
from core.metrics.collapsing import collapse


@final
@dataclass(frozen=True)
class NC3(Metric):
    """||W / ||W|| - M / ||M|| ||^2 of the head's rows W and the centred class means M, on the
    training sets (Papyan et al. 2020, doi.org/10.1073/pnas.2015509117); in [0, 4], 0 when aligned.

    An edit of the head alone moves it away from gold while every probe still reads the class.
    """

    unit: ClassVar = ""
    low: ClassVar = 0.0
    high: ClassVar = 4.0
    ideal: ClassVar = "gold"

    def measure(self, model, reference, tap, seed):
        def quantity(z, found):
            return duality(model.head[list(found.classes)].clone(), found.means)

        return collapse(model, tap, seed, quantity, self.low, self.high)
