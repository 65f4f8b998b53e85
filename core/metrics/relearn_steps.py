"""Relearn time: steps of fine-tuning until the forgotten classes are known again."""

from dataclasses import dataclass
from typing import ClassVar, final

from core.metrics.base import Measured, Metric, Unavailable
from core.metrics.outputs import Outputs
from core.metrics.relearning import MOST, Relearned


def relearned(model: Outputs) -> Relearned:
    """How the model came back.

    Raises:
        Unavailable: nobody has seen it.
    """
    if model.relearned is None:
        raise Unavailable("nobody relearned it, or its loss was not finite while it was")
    return model.relearned


@final
@dataclass(frozen=True)
class RelearnSteps(Metric):
    """Steps of Adam (1e-3, batches of 32) on the forget set and as many retained images until the
    test accuracy on the forgotten classes is 95 % of the original's; 200 says "not within 200".

    Relearn time of Chundawat et al. (2023, arxiv.org/abs/2201.05629). Few steps: the knowledge was
    only covered up; but a destroyed model, too, soon says the class of half of its lessons to
    everything, so read it beside the retained accuracy. One training under one seed, so it has no
    interval; the accuracy is looked at after every step up to 20, then a tenth further on each
    time.
    Differs: not all training data but as many retained images as forgotten ones; batch norms keep
    their statistics; a mask over classes is lifted, for whoever relearns holds the weights.
    """

    unit: ClassVar = ""
    low: ClassVar = 0.0
    high: ClassVar = float(MOST)
    ideal: ClassVar = "gold"
    levels: ClassVar = frozenset({"class"})

    def measure(self, model, reference, tap, seed):
        found = relearned(model)
        steps = float(found.steps[-1])
        return Measured(steps, steps, steps, found.n)
