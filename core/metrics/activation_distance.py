"""Activation distance: how far the probabilities are from gold's, on what was to go."""

import math
from dataclasses import dataclass
from typing import ClassVar, final

from core.metrics.base import Metric, Unavailable, mean_of


@final
@dataclass(frozen=True)
class ActivationDistance(Metric):
    """Mean over the forget set of the Euclidean distance between the two softmax vectors, in
    [0, sqrt 2] (Golatkar et al. 2021, arxiv.org/abs/2012.13431; in this form Chundawat et al. 2023,
    arxiv.org/abs/2205.08096). In spite of its name it sees answers only, no hidden activation.
    """

    unit: ClassVar = ""
    low: ClassVar = 0.0
    high: ClassVar = math.sqrt(2)
    ideal: ClassVar = "low"
    against: ClassVar = "gold"

    def measure(self, model, reference, tap, seed):
        if reference is None:
            raise Unavailable("there is no gold to compare with")
        p, q = (one.logits["forget"].double().softmax(1) for one in (model, reference))
        return mean_of({"forget": (p - q).norm(dim=1).clamp_max(self.high)}, seed)
