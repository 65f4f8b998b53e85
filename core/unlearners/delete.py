"""DELETE: distil the original with the forgotten class masked out of its answer."""

import math
from dataclasses import dataclass
from typing import ClassVar, final

import torch

from core.knobs import knob
from core.losses import gone, kl, without
from core.optim import descend
from core.unlearners.base import Citation, Unlearner


@final
@dataclass(frozen=True, kw_only=True)
class Delete(Unlearner):
    """Minimise KL(original without the forgotten classes || model) on the forget set.

    Differs: with several forgotten classes all of them are masked, not just each image's own; the
    gradient is clipped, for with fixed norms the first steps are steep.
    """

    cite: ClassVar = Citation(
        "Zhou et al.", 2025, "Decoupled Distillation to Erase", "arxiv.org/abs/2503.23751"
    )
    needs: ClassVar = frozenset({"forget"})
    norms: ClassVar = "frozen"

    lr: float = knob(0.002, 1e-5, 1.0, "SGD step size", log=True)
    epochs: int = knob(8, 1, 100, "passes over the forget set")
    batch: int = knob(64, 1, 1024, "examples a step")
    clip: float = knob(1.0, 1e-3, 100.0, "largest gradient norm", log=True)

    def run(self, model, teacher, split, target, rng, on_step):
        batches = split.forget.batches(self.batch, rng)

        def loss():
            f = next(batches)
            with torch.no_grad():
                goal = without(teacher(f.x), gone(target, f.y))
            return kl(goal, model(f.x))

        steps = self.epochs * math.ceil(len(split.forget) / self.batch)
        descend(model, loss, steps=steps, lr=self.lr, clip=self.clip, on_step=on_step)
