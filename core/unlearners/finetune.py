"""Fine-tuning: go on training on the retain set, and hope that the rest fades."""

import math
from dataclasses import dataclass
from typing import ClassVar, final

from torch.nn.functional import cross_entropy

from core.knobs import knob
from core.optim import descend
from core.unlearners.base import Citation, Unlearner


@final
@dataclass(frozen=True, kw_only=True)
class Finetune(Unlearner):
    """Minimise cross-entropy on the retain set, starting from the original.

    Nothing in it turns against the forget set: only steps so large that they train much of the
    model anew make it forget, and they cost retained accuracy; with smaller ones it does not.
    """

    cite: ClassVar = Citation(
        "Golatkar et al.", 2020, "Eternal Sunshine of the Spotless Net", "arxiv.org/abs/1911.04933"
    )
    needs: ClassVar = frozenset({"retain"})

    lr: float = knob(0.063, 1e-5, 1.0, "SGD step size", log=True)
    epochs: int = knob(3, 1, 100, "passes over the retain set")
    batch: int = knob(128, 1, 1024, "examples a step")
    weight_decay: float = knob(7.5e-05, 0.0, 0.1, "L2 penalty", log=True)

    def run(self, model, teacher, split, target, rng, on_step):
        batches = split.retain.batches(self.batch, rng)

        def loss():
            r = next(batches)
            return cross_entropy(model(r.x), r.y)

        steps = self.epochs * math.ceil(len(split.retain) / self.batch)
        descend(
            model, loss, steps=steps, lr=self.lr, weight_decay=self.weight_decay, on_step=on_step
        )
