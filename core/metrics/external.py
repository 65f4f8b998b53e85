"""Accuracy on a part of the external test set, where the data set has one."""

from core.metrics.accuracy import accuracy
from core.metrics.base import Measured, Unavailable
from core.metrics.outputs import Outputs

__support__ = True


def external_accuracy(model: Outputs, name: str, seed: int) -> Measured:
    """Share of the set `name` that the model labels rightly.

    Raises:
        Unavailable: the data set has no external test set, or the set is empty.
    """
    if name not in model.y:
        raise Unavailable("this data set has no external test set")
    return accuracy(model, name, seed)
