"""EU-k: train the last layers anew, on the retain set, under a body that stays."""

from dataclasses import dataclass
from typing import ClassVar, final

from core.knobs import knob
from core.unlearners.base import Citation, Unlearner
from core.unlearners.finetune import Finetune
from core.unlearners.last_layers import freeze, parts


@final
@dataclass(frozen=True, kw_only=True)
class EUk(Unlearner):
    """Give the last k parts new weights, and minimise cross-entropy on the retain set over them.

    A part is a stage of the body, or the head. The new head never sees a forgotten class; the
    parts before are frozen, and keep what they know of it.
    Differs: a few epochs at a constant step size, not the original's whole training.
    """

    cite: ClassVar = Citation(
        "Goel et al.",
        2022,
        "Towards Adversarial Evaluations for Inexact Machine Unlearning",
        "arxiv.org/abs/2201.06640",
    )
    needs: ClassVar = frozenset({"retain"})

    k: int = knob(2, 1, 20, "parts that are trained anew, from the head backwards")
    lr: float = knob(0.03, 1e-5, 1.0, "SGD step size", log=True)
    epochs: int = knob(3, 1, 100, "passes over the retain set")
    batch: int = knob(128, 1, 1024, "examples a step")
    weight_decay: float = knob(5e-4, 0.0, 0.1, "L2 penalty", log=True)

    def run(self, model, teacher, split, target, rng, on_step):
        # `fresh` draws from torch's own generator, which is `rng` during a run.
        fresh = model.fresh().to(model.mean.device)
        for mine, new in list(zip(parts(model), parts(fresh), strict=True))[-self.k :]:
            mine.load_state_dict(new.state_dict())
        freeze(model, self.k)
        tune = Finetune(
            lr=self.lr, epochs=self.epochs, batch=self.batch, weight_decay=self.weight_decay
        )
        tune.run(model, teacher, split, target, rng, on_step)
