"""Accuracy of one set, shared by the four accuracies."""

from core.metrics.base import Measured, mean_of
from core.metrics.outputs import Outputs, predicted

__support__ = True


def accuracy(model: Outputs, name: str, seed: int) -> Measured:
    """Share of the set `name` that the model labels rightly; a tie is a miss.

    Raises:
        Unavailable: the set is empty.
    """
    return mean_of({name: (predicted(model.logits[name]) == model.y[name]).float()}, seed)
