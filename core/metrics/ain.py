"""AIN: anamnesis index, relearn time as a share of gold's."""

from dataclasses import dataclass
from typing import ClassVar, final

from core.metrics.base import Measured, Metric, Unavailable
from core.metrics.relearn_steps import relearned
from core.metrics.relearning import MOST


@final
@dataclass(frozen=True)
class Ain(Metric):
    """Chundawat et al. (2023, arxiv.org/abs/2201.05629): about 1 is as gold, far below 1 the
    knowledge is still there, far above 1 more than the class is gone.

    `relearn_steps` over gold's, with its rules; where only the model ran into the limit, a lower
    bound. One training each, so it has no interval.
    """

    unit: ClassVar = "ratio"
    low: ClassVar = 0.0
    high: ClassVar = float(MOST)
    ideal: ClassVar = "gold"
    against: ClassVar = "gold"
    levels: ClassVar = frozenset({"class"})

    def measure(self, model, reference, tap, seed):
        if reference is None:
            raise Unavailable("there is no gold to compare with")
        mine, theirs = relearned(model), relearned(reference)
        if not theirs.back:
            raise Unavailable(f"gold has not learned it within {MOST} steps, so there is no ratio")
        if not theirs.steps[-1]:
            raise Unavailable("gold knows it without a single step, so there is no ratio")
        share = mine.steps[-1] / theirs.steps[-1]
        return Measured(share, share, share, mine.n)
