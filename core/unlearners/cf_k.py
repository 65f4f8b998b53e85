"""CF-k: fine-tune only the last layers, and hope that the rest fades."""

from dataclasses import dataclass
from typing import ClassVar, final

from core.knobs import knob
from core.unlearners.base import Citation, Unlearner
from core.unlearners.finetune import Finetune
from core.unlearners.last_layers import freeze


@final
@dataclass(frozen=True, kw_only=True)
class CFk(Unlearner):
    """Minimise cross-entropy on the retain set over the last k parts; those before are frozen.

    A part is a stage of the body, or the head. With all of them this is fine-tuning, bit for bit.
    Nothing in it turns against the forget set: with smaller steps, or fewer parts, it forgets
    little.
    """

    cite: ClassVar = Citation(
        "Goel et al.",
        2022,
        "Towards Adversarial Evaluations for Inexact Machine Unlearning",
        "arxiv.org/abs/2201.06640",
    )
    needs: ClassVar = frozenset({"retain"})

    k: int = knob(3, 1, 20, "parts that are trained, from the head backwards")
    lr: float = knob(0.1, 1e-5, 1.0, "SGD step size", log=True)
    epochs: int = knob(3, 1, 100, "passes over the retain set")
    batch: int = knob(128, 1, 1024, "examples a step")
    weight_decay: float = knob(5e-4, 0.0, 0.1, "L2 penalty", log=True)

    def run(self, model, teacher, split, target, rng, on_step):
        freeze(model, self.k)
        tune = Finetune(
            lr=self.lr, epochs=self.epochs, batch=self.batch, weight_decay=self.weight_decay
        )
        tune.run(model, teacher, split, target, rng, on_step)
