"""Differences from gold, sample by sample, and the interval of what is made of their means."""

from collections.abc import Callable, Mapping

import numpy as np
from torch import Tensor

from core.metrics.aus import hits
from core.metrics.base import Measured, Unavailable, percentiles, resampled
from core.metrics.outputs import Outputs

__support__ = True

SETS = ("forget", "retain", "test_retain")
"""What accuracies are compared on: both parts of the training set, and retained test images."""


def accuracies(model: Outputs, gold: Outputs | None) -> dict[str, Tensor]:
    """By set, what each sample adds to the model's accuracy beyond gold's (n; -1, 0 or 1).

    Raises:
        Unavailable: no gold, or a set is empty.
    """
    if gold is None:
        raise Unavailable("there is no gold to compare with")
    return {name: hits(model, name) - hits(gold, name) for name in SETS}


def combined(
    rows: Mapping[str, Tensor], combine: Callable[[np.ndarray], np.ndarray], seed: int
) -> Measured:
    """`combine` (gaps by rows of an array to one number a column) of the mean of each of `rows`.

    Named `forget`, or `forget` and something after a space, rows are of the same samples and are
    resampled together. A size, which cannot be negative, is larger in a resample than it is: the
    interval is stretched to hold the value.
    """
    places = {name: SETS.index(name.split()[0]) for name in rows}
    means = np.array([[float(values.mean())] for values in rows.values()])
    value = float(combine(means)[0])
    own = [len(SETS) * seed + places[name] for name in rows]
    drawn = [resampled(v.numpy(), s) for v, s in zip(rows.values(), own, strict=True)]
    low, high = percentiles(combine(np.stack(drawn)))
    n = sum(len(rows[name]) for name in SETS)
    return Measured(value, min(low, value), max(high, value), n)
