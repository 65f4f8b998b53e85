"""GA+FT: climb the loss of the forget set, then repair on the retain set."""

import math
from dataclasses import dataclass
from typing import ClassVar, final

from core.knobs import knob
from core.optim import frozen_norms
from core.unlearners.base import Citation, Unlearner
from core.unlearners.finetune import Finetune
from core.unlearners.gradient_ascent import GradientAscent
from core.unlearners.two_sets import counted


@final
@dataclass(frozen=True, kw_only=True)
class GaFt(Unlearner):
    """Gradient ascent as it is here, to its early stop; then fine-tuning as it is here.

    The repair brings back what the climb destroyed, without ever seeing it. It stays forgotten only
    where climb and repair take steps so large that little of the original is left: with small ones
    next to nothing is forgotten.
    Differs: one round of both with constant step sizes; published forms alternate, or let the
    step sizes fall along a cosine.
    """

    cite: ClassVar = Citation(
        "Lee et al.", 2025, "Unlearning Comparator", "arxiv.org/abs/2508.12730"
    )
    caveat: ClassVar = (
        "At its defaults the repair brings back none or an eighth of a class, by the seed."
    )
    needs: ClassVar = frozenset({"forget", "retain"})

    lr_ascent: float = knob(0.024, 1e-5, 1.0, "SGD step size of the climb", log=True)
    epochs_ascent: int = knob(52, 1, 100, "passes over the forget set at most")
    stop: float = knob(
        0.0, 0.0, 1.0, "batch accuracy at which the climb ends, for classes", unit="fraction"
    )
    stop_images: float = knob(
        0.9, 0.0, 1.0, "the same for single images: about what unseen ones reach", unit="fraction"
    )
    clip: float = knob(8.0, 1e-3, 100.0, "largest gradient norm of the climb", log=True)
    lr: float = knob(0.077, 1e-5, 1.0, "SGD step size of the repair", log=True)
    epochs: int = knob(1, 1, 100, "passes over the retain set")
    batch: int = knob(128, 1, 1024, "examples a step")

    def run(self, model, teacher, split, target, rng, on_step):
        climb = GradientAscent(
            lr=self.lr_ascent,
            epochs=self.epochs_ascent,
            batch=self.batch,
            clip=self.clip,
            stop=self.stop,
            stop_images=self.stop_images,
        )
        repair = Finetune(lr=self.lr, epochs=self.epochs, batch=self.batch)
        steps = (
            self.epochs_ascent * math.ceil(len(split.forget) / self.batch),
            self.epochs * math.ceil(len(split.retain) / self.batch),
        )
        step = counted(on_step, sum(steps))
        # Each has an optimiser of its own: no momentum of the climb reaches the repair.
        with frozen_norms(model):
            climb.run(model, teacher, split, target, rng, step)
        repair.run(model, teacher, split, target, rng, step)
