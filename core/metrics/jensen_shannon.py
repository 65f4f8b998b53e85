"""Jensen-Shannon divergence of a model's answers from gold's, shared by its two readings."""

import math

from torch import Tensor

from core.metrics.base import Measured, Unavailable, mean_of
from core.metrics.divergence import probabilities
from core.metrics.outputs import Outputs

__support__ = True

HIGHEST = math.log(2)


def js(gold: Tensor, model: Tensor) -> Tensor:
    """KL(p || m) / 2 + KL(q || m) / 2, m = (p + q) / 2, of each row of logits (n), in nats."""
    p, q = probabilities(gold), probabilities(model)
    m = (p + q) / 2
    both = (p * (p / m).log()).sum(1) + (q * (q / m).log()).sum(1)
    # Rounding alone can lead outside.
    return (both / 2).clamp(0, HIGHEST)


def to_gold(model: Outputs, gold: Outputs | None, seed: int, name: str) -> Measured:
    """The mean over the samples of the set `name`, in [0, log 2].

    Raises:
        Unavailable: no gold, no sample, or answers that are not finite.
    """
    if gold is None:
        raise Unavailable("there is no gold to compare with")
    return mean_of({name: js(gold.logits[name], model.logits[name])}, seed)
