"""KL divergence of a model's answers from gold's, shared by its three readings."""

import math

import torch
from torch import Tensor

from core.metrics.base import Measured, Unavailable, mean_of
from core.metrics.outputs import Outputs

__support__ = True

FLOOR = 1e-10
"""Smallest probability: a masked class has the logit -inf, and the divergence stays finite."""
HIGHEST = -math.log(FLOOR)


def divergence(model: Outputs, gold: Outputs | None, seed: int, *sets: str) -> Measured:
    """Mean over the samples of `sets` of KL(gold || model), in nats, in [0, HIGHEST].

    Raises:
        Unavailable: no gold, no sample, or answers that are not finite.
    """
    if gold is None:
        raise Unavailable("there is no gold to compare with")
    found = [name for name in sets if name in model.logits and len(model.logits[name])]
    if not found:
        raise Unavailable(f"there is no sample in {' or '.join(sets).replace('_', ' ')}")
    nats = [kl(gold.logits[name], model.logits[name]) for name in found]
    return mean_of({"_".join(sets): torch.cat(nats)}, seed)


def kl(gold: Tensor, model: Tensor) -> Tensor:
    """KL(softmax(gold) || softmax(model)) of each row of logits (n), in nats."""
    p, q = probabilities(gold), probabilities(model)
    # Rounding alone can make it negative.
    return (p * (p / q).log()).sum(1).clamp_min(0)


def probabilities(logits: Tensor) -> Tensor:
    """Softmax in double precision, none below FLOOR, each row again of sum 1 (n k)."""
    p = logits.double().softmax(1).clamp_min(FLOOR)
    return p / p.sum(1, keepdim=True)
