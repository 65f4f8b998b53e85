"""SVC-MIA, confidence: share of the forget set that its answers' confidence gives away."""

from dataclasses import dataclass
from typing import ClassVar, final

from torch import Tensor

from core.metrics.base import Metric
from core.metrics.svc_attack import svc_mia


def confidence(p: Tensor, y: Tensor) -> Tensor:
    """Probability of the true class (n)."""
    return p.gather(1, y[:, None]).squeeze(1)


@final
@dataclass(frozen=True)
class SvcMiaConfidence(Metric):
    """Fraction of forgotten training images that a support vector classifier (radial kernel, C 3)
    on p_y takes for MEMBERS; it is trained on retained training images against unseen retained
    ones. Attack of SalUn (Fan et al. 2024, arxiv.org/abs/2310.12508), its headline form.

    The ideal is gold's value, not 0. For a class it mostly says whether the class is still
    answered: `u_mia` compares with unseen images of the same class.
    Differs: SalUn prints the fraction of non-members, one minus this; at most 500 of either kind
    train the attacker.
    """

    unit: ClassVar = "fraction"
    low: ClassVar = 0.0
    high: ClassVar = 1.0
    ideal: ClassVar = "gold"

    def measure(self, model, reference, tap, seed):
        return svc_mia(model, confidence, seed)
