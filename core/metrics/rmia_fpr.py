"""rMIA, false alarms: share of unseen images that the same attacker takes for training images."""

from dataclasses import dataclass
from typing import ClassVar, final

import torch

from core.metrics.base import Metric, mean_of
from core.metrics.membership import attack


@final
@dataclass(frozen=True)
class RmiaFpr(Metric):
    """The attack of `rmia` on unseen images of the forgotten classes (instance targets: of any)."""

    unit: ClassVar = "fraction"
    low: ClassVar = 0.0
    high: ClassVar = 1.0
    ideal: ClassVar = "gold"

    def measure(self, model, reference, tap, seed):
        alarms = torch.from_numpy(attack(model, tap, seed).others)
        return mean_of({"unseen": alarms.double()}, seed)
