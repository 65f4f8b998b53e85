"""NC4: share of samples that the head and the nearest class mean put into different classes."""

from dataclasses import dataclass
from typing import ClassVar, final

import torch

from core.geometry.collapse import Undefined, class_means, nearest
from core.metrics.base import Metric, Unavailable, mean_of
from core.metrics.collapsing import training
from core.metrics.outputs import predicted


@final
@dataclass(frozen=True)
class NC4(Metric):
    """Disagreement of the model's answer with the nearest class mean, on the training sets
    (Papyan et al. 2020, doi.org/10.1073/pnas.2015509117); 0 under exact collapse.

    Classes without a sample are open to neither side. A tie of logits agrees with nothing.
    Differs: classes count alike however many samples each has.
    """

    unit: ClassVar = "fraction"
    low: ClassVar = 0.0
    high: ClassVar = 1.0
    ideal: ClassVar = "gold"

    def measure(self, model, reference, tap, seed):
        z, y = training(model, tap)
        logits = torch.cat([model.logits[name] for name in ("forget", "retain")])
        if logits.isnan().any():
            raise Unavailable("logits are not finite")
        try:
            found = class_means(z, y, len(model.head))
            near = nearest(z, found.means)
        except Undefined as why:
            raise Unavailable(str(why)) from None
        apart = (predicted(logits[:, list(found.classes)]) != near).double()
        return mean_of({str(c): apart[y == c] for c in found.classes}, seed)
