"""Average gap: mean distance to gold of three accuracies and a membership attack."""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from core.metrics.base import Metric, Unavailable
from core.metrics.differing import accuracies, combined
from core.metrics.svc_attack import called
from core.metrics.svc_mia_confidence import confidence


def gap(gaps: np.ndarray) -> np.ndarray:
    """Mean over the first axis of |gap|."""
    return np.abs(gaps).mean(0)


@final
@dataclass(frozen=True)
class AverageGap(Metric):
    """SalUn (Fan et al. 2024, arxiv.org/abs/2310.12508): mean |value - gold's value| over UA (error
    on the forget set), RA (accuracy on the retain set), TA (on retained test images) and MIA
    (`svc_mia_confidence`). Signs are lost: it does not tell too little from too much forgetting,
    and answers alone play a part.
    """

    unit: ClassVar = "fraction"
    low: ClassVar = 0.0
    high: ClassVar = 1.0
    ideal: ClassVar = "low"
    against: ClassVar = "gold"

    def measure(self, model, reference, tap, seed):
        if reference is None:
            raise Unavailable("there is no gold to compare with")
        rows = accuracies(model, reference)
        mine, theirs = (called(one, confidence, seed) for one in (model, reference))
        return combined(rows | {"forget attack": mine - theirs}, gap, seed)
