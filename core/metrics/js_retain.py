"""JS to gold, retain set: how far the answers are from gold's, bounded and the same both ways."""

from dataclasses import dataclass
from typing import ClassVar, final

from core.metrics.base import Metric
from core.metrics.jensen_shannon import HIGHEST, to_gold


@final
@dataclass(frozen=True)
class JsRetain(Metric):
    """KL(p || m) / 2 + KL(q || m) / 2 with m = (p + q) / 2, natural logarithm, mean over the
    retain set's training images (Lin 1991, doi.org/10.1109/18.61115; to a retrained model in
    Chundawat et al. 2023, arxiv.org/abs/2205.08096).

    Near log 2 it no longer tells how far apart two sure answers are: see `kl_retain`.
    Differs: the mixture m is the second argument, sample by sample; released code swaps them, or
    normalises over all samples at once.
    """

    unit: ClassVar = "nats"
    low: ClassVar = 0.0
    high: ClassVar = HIGHEST
    ideal: ClassVar = "low"
    against: ClassVar = "gold"

    def measure(self, model, reference, tap, seed):
        return to_gold(model, reference, seed, "retain")
