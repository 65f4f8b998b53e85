"""Unseen images to hold the forget set against: of its own classes, or of all."""

import torch
from torch import Tensor

from core.metrics.base import Unavailable
from core.metrics.divergence import FLOOR
from core.metrics.outputs import Outputs

__support__ = True


def against(model: Outputs) -> str:
    """The set of unseen images that differ from the forget set in nothing but that.

    A forgotten class or subclass is compared with test images of its own: against the whole test
    set an attacker would tell the class, and take gold itself for a leak.
    """
    kin = model.forget_classes or len(model.y.get("test_forget", ()))
    return "test_forget" if kin else "test_retain"


def log_likelihoods(model: Outputs, name: str) -> Tensor:
    """log p_y of each sample in order of ids (n, float64), none below log FLOOR.

    Raises:
        Unavailable: no sample, or answers that are not finite.
    """
    if name not in model.y or not len(model.y[name]):
        raise Unavailable(f"there is no sample in {name.replace('_', ' ')}")
    order = model.ids[name].argsort()
    logits, y = model.logits[name][order].double(), model.y[name][order]
    found = logits.log_softmax(1).gather(1, y[:, None]).squeeze(1)
    if found.isnan().any():
        raise Unavailable("the answers are not finite")
    return found.clamp_min(torch.tensor(FLOOR).log().item())
