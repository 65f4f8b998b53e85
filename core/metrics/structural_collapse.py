"""Structural collapse: how far retained images have moved among the original's class directions."""

from dataclasses import dataclass
from typing import ClassVar, final

import torch
from torch import Tensor
from torch.nn.functional import normalize

from core.metrics.base import Metric, Unavailable, mean_of
from core.metrics.similarity import pair


def structure(features: Tensor, anchors: Tensor) -> Tensor:
    """Cosine of each row of features (n d) with each anchor (k d), n k."""
    return normalize(features.double(), dim=1) @ normalize(anchors.double(), dim=1).T


@final
@dataclass(frozen=True)
class StructuralCollapse(Metric):
    """SC = 1 - mean cosine of the rows of S_ori and S_unl, each row holding an image's cosines with
    one anchor a class; held-out retained images, original as reference. 0: every image stands where
    it stood; up to 2. After the structures of Structguard.

    Gold, whose features have axes of their own, reads far from 0: this is damage to the original's
    structure, not distance to gold.
    Differs: the paper's score is not published, this is its alignment loss on real images; anchors
    are the original head's rows, for the anchors of a method are not known to the judge.
    """

    unit: ClassVar = ""
    low: ClassVar = 0.0
    high: ClassVar = 2.0
    ideal: ClassVar = "low"
    against: ClassVar = "original"
    levels: ClassVar = frozenset({"instance"})

    def measure(self, model, reference, tap, seed):
        if reference is None:
            raise Unavailable("there is no original to compare with")
        shown = pair(model, reference, tap, "test_retain")
        width = reference.head.shape[1]
        if any(z.shape[1] != width for z in shown):
            raise Unavailable("features and the original's head are not of one width")
        now, before = (structure(z, reference.head) for z in shown)
        lengths = torch.stack([now.norm(dim=1), before.norm(dim=1)])
        if not (torch.isfinite(lengths).all() and (lengths > 1e-12).all()):
            raise Unavailable("some features have no direction, or are not finite")
        cosine = (now * before).sum(1) / lengths.prod(0)
        return mean_of({"test_retain": 1 - cosine.clamp(-1, 1)}, seed)
