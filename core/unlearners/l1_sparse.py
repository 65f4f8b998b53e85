"""l1-sparse: fine-tune under an L1 penalty, in the hope that what fades takes the rest along."""

import math
from dataclasses import dataclass
from itertools import count
from typing import ClassVar, final

from torch.nn.functional import cross_entropy

from core.knobs import knob
from core.optim import descend
from core.unlearners.base import Citation, Unlearner


@final
@dataclass(frozen=True, kw_only=True)
class L1Sparse(Unlearner):
    """Minimise CE(retain) + gamma * (1 - step / steps) * |weights|_1, starting from the original.

    At gamma = 0 this is fine-tuning, bit for bit.
    It also costs the fit to single retained images, as any strong regularisation does.
    """

    cite: ClassVar = Citation(
        "Jia et al.",
        2023,
        "Model Sparsity Can Simplify Machine Unlearning",
        "arxiv.org/abs/2304.04934",
    )
    needs: ClassVar = frozenset({"retain"})

    gamma: float = knob(5e-4, 0.0, 1.0, "L1 weight at first; it falls to zero", log=True)
    lr: float = knob(0.03, 1e-5, 1.0, "SGD step size", log=True)
    epochs: int = knob(3, 1, 100, "passes over the retain set")
    batch: int = knob(128, 1, 1024, "examples a step")
    weight_decay: float = knob(5e-4, 0.0, 0.1, "L2 penalty", log=True)

    def run(self, model, teacher, split, target, rng, on_step):
        batches, taken = split.retain.batches(self.batch, rng), count()
        steps = self.epochs * math.ceil(len(split.retain) / self.batch)

        def loss():
            r = next(batches)
            size = sum(p.abs().sum() for p in model.parameters())
            return cross_entropy(model(r.x), r.y) + self.gamma * (1 - next(taken) / steps) * size

        descend(
            model, loss, steps=steps, lr=self.lr, weight_decay=self.weight_decay, on_step=on_step
        )
