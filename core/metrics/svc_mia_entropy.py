"""SVC-MIA, entropy: share of the forget set that its answers' entropy gives away."""

from dataclasses import dataclass
from typing import ClassVar, final

from torch import Tensor

from core.metrics.base import Metric
from core.metrics.svc_attack import svc_mia


def entropy(p: Tensor, y: Tensor) -> Tensor:
    """-sum_k p_k log p_k (n), in nats; the label plays no part."""
    return -(p * p.log()).sum(1)


@final
@dataclass(frozen=True)
class SvcMiaEntropy(Metric):
    """The attack of `svc_mia_confidence` on the entropy of the answer: fraction predicted MEMBER.

    It knows no labels: an answer that is sure of a wrong class passes for a member's. Form of SalUn
    (Fan et al. 2024, arxiv.org/abs/2310.12508); the ideal is gold's value.
    Differs: as `svc_mia_confidence`.
    """

    unit: ClassVar = "fraction"
    low: ClassVar = 0.0
    high: ClassVar = 1.0
    ideal: ClassVar = "gold"

    def measure(self, model, reference, tap, seed):
        return svc_mia(model, entropy, seed)
