"""SVC-MIA, modified entropy: share of the forget set given away by entropy that knows the label."""

from dataclasses import dataclass
from typing import ClassVar, final

from torch import Tensor

from core.metrics.base import Metric
from core.metrics.divergence import FLOOR
from core.metrics.svc_attack import svc_mia


def m_entropy(p: Tensor, y: Tensor) -> Tensor:
    """-(1 - p_y) log p_y - sum_{k != y} p_k log(1 - p_k) (n), in nats."""
    right = p.gather(1, y[:, None])
    wrong = p * (1 - p).clamp_min(FLOOR).log()
    others = wrong.sum(1) - wrong.gather(1, y[:, None]).squeeze(1)
    return -((1 - right) * right.log()).squeeze(1) - others


@final
@dataclass(frozen=True)
class SvcMiaMEntropy(Metric):
    """The attack of `svc_mia_confidence` on the modified entropy of Song and Mittal (2021,
    arxiv.org/abs/2003.10595), which a sure wrong answer raises and a sure right one lowers:
    fraction predicted MEMBER. The ideal is gold's value.

    Differs: as `svc_mia_confidence`; and the formula is taken sample by sample, where SalUn's
    released code overwrites whole columns and takes log p_k for log(1 - p_k).
    """

    unit: ClassVar = "fraction"
    low: ClassVar = 0.0
    high: ClassVar = 1.0
    ideal: ClassVar = "gold"

    def measure(self, model, reference, tap, seed):
        return svc_mia(model, m_entropy, seed)
