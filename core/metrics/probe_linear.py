"""Linear probe: balanced accuracy of a linear classifier that looks for the class in features."""

from dataclasses import dataclass
from typing import ClassVar, final

from core.metrics.base import Metric
from core.metrics.probing import balanced, linear


@final
@dataclass(frozen=True)
class ProbeLinear(Metric):
    """Forget class against the rest on the test set, by logistic regression on standardised
    features (C = 1), 70 % to fit and 30 % to test ("Mirage", 2026, arxiv.org/abs/2605.20282).

    0.5 is chance. Gold itself is far above it, for a class it never saw still has a look of its
    own. Alone it certifies nothing: a class moved to the centre of the others reads 0.5 here.
    Differs: five splits whose test parts rotate instead of one.
    """

    unit: ClassVar = "fraction"
    low: ClassVar = 0.0
    high: ClassVar = 1.0
    ideal: ClassVar = "gold"
    per_tap: ClassVar = True
    levels: ClassVar = frozenset({"class", "subclass"})

    def measure(self, model, reference, tap, seed):
        return balanced(model, tap, seed, linear)
