"""Agreement: share of samples that two models name alike, shared by its two readings."""

import torch

from core.metrics.base import Measured, Unavailable, mean_of
from core.metrics.outputs import Outputs, predicted

__support__ = True


def agreement(model: Outputs, gold: Outputs | None, seed: int, *sets: str) -> Measured:
    """The share of the samples of `sets` for which both have the same argmax.

    An answer that is tied agrees with another tied one only.

    Raises:
        Unavailable: no gold, no sample, or answers that are not finite.
    """
    if gold is None:
        raise Unavailable("there is no gold to compare with")
    found = [name for name in sets if name in model.logits and len(model.logits[name])]
    if not found:
        raise Unavailable(f"there is no sample in {' or '.join(sets).replace('_', ' ')}")
    mine, theirs = (torch.cat([m.logits[name] for name in found]) for m in (model, gold))
    if mine.isnan().any() or theirs.isnan().any():
        raise Unavailable("the answers are not finite")
    return mean_of({"_".join(sets): (predicted(mine) == predicted(theirs)).double()}, seed)
