"""AUS: adaptive unlearning score, retained accuracy kept over forget accuracy left."""

from dataclasses import dataclass
from typing import ClassVar, final

from torch import Tensor

from core.metrics.base import Metric, Unavailable
from core.metrics.outputs import Outputs, predicted
from core.metrics.spread import linearised


def aus(before: float, kept: float, left: float) -> float:
    """The score from accuracies in [0, 1]: retained before and after, forgotten after."""
    return (1 - (before - kept)) / (1 + left)


@final
@dataclass(frozen=True)
class Aus(Metric):
    """Class-removal form of DUCK (Cotogni et al. 2023, arxiv.org/abs/2312.02052), on the test set.

    The accuracy before is the original's, not gold's; the score exceeds 1 where the retained
    accuracy has risen. The original itself reads 1 / (1 + its forget accuracy).
    """

    unit: ClassVar = ""
    low: ClassVar = 0.0
    high: ClassVar = 2.0
    ideal: ClassVar = "gold"
    against: ClassVar = "original"
    levels: ClassVar = frozenset({"class"})

    def measure(self, model, reference, tap, seed):
        if reference is None:
            raise Unavailable("there is no original to compare with")
        before, kept = hits(reference, "test_retain"), hits(model, "test_retain")
        left = hits(model, "test_forget")
        value = aus(*(float(h.mean()) for h in (before, kept, left)))
        change, weight = kept - before, 1 / (1 + float(left.mean()))
        sway = {
            "test_retain": weight * (change - change.mean()),
            "test_forget": -weight * value * (left - left.mean()),
        }
        return linearised(value, sway, seed, self.low, self.high)


def hits(model: Outputs, name: str) -> Tensor:
    """Which samples of the set are named rightly (n, 0 or 1); a tie is a miss.

    Raises:
        Unavailable: the set is empty.
    """
    if name not in model.y or not len(model.y[name]):
        raise Unavailable(f"there is no sample in {name.replace('_', ' ')}")
    return (predicted(model.logits[name]) == model.y[name]).double()
