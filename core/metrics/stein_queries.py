"""Stein bound: queries below which no test can tell the model from gold."""

import math
from dataclasses import dataclass
from typing import ClassVar, final

from core.metrics.base import Measured, Metric
from core.metrics.divergence import HIGHEST, divergence

ERROR = 0.05
"""Of either kind that the test may make."""
MOST = 10_000.0
"""The judge looks at so many test images at most, and vouches for no larger number."""


def queries(kappa: float, a: float = ERROR, b: float = ERROR) -> float:
    """Fewest answers for a test with the errors a and b, at `kappa` nats an answer; at most MOST.

    Data processing: n kappa is at least the divergence of the test's own verdicts.
    """
    needed = (1 - a) * math.log((1 - a) / b) + a * math.log(a / (1 - b))
    return MOST if kappa * MOST <= needed else needed / kappa


@final
@dataclass(frozen=True)
class SteinQueries(Metric):
    """n >= [(1 - a) log((1 - a) / b) + a log(a / (1 - b))] / KL, a = b = 0.05: the least number of
    independent test images after whose answers anybody could tell model from gold with errors of
    5 %. KL(gold || model) per image is that of `kl_test`; the bound is named in Dine and Furon
    (2026, arxiv.org/abs/2605.10680).

    A lower bound: real attackers need more. It says nothing of features, nor of chosen queries.
    Differs: the finite-n form, by data processing, instead of log(1/b) / KL; it is infinite for two
    equal models, so it is cut at 10,000, the most test images that are looked at.
    """

    unit: ClassVar = ""
    low: ClassVar = queries(HIGHEST)
    high: ClassVar = MOST
    ideal: ClassVar = "high"
    against: ClassVar = "gold"

    def measure(self, model, reference, tap, seed):
        kl = divergence(model, reference, seed, "test_forget", "test_retain")
        return Measured(queries(kl.value), queries(kl.high), queries(kl.low), kl.n)
