"""Retraining: a new model that never sees the forget set; this is gold."""

from dataclasses import dataclass, replace
from typing import ClassVar, final

from core.knobs import knob
from core.optim import fit
from core.unlearners.base import Citation, Unlearner


@final
@dataclass(frozen=True, kw_only=True)
class Retrain(Unlearner):
    """Train the same architecture from new weights, by its own training, on the retain set.

    The number of epochs is held, not that of steps. All k outputs stay: a forgotten class is
    one that its head never saw.
    """

    cite: ClassVar = Citation(
        "Bourtoule et al.", 2021, "Machine Unlearning", "arxiv.org/abs/1912.03817"
    )
    needs: ClassVar = frozenset({"retain"})
    from_original: ClassVar = False

    share: float = knob(1.0, 0.01, 2.0, "epochs, as a share of the original's", log=True)

    def run(self, model, teacher, split, target, rng, on_step):
        # `fresh` draws from torch's own generator, which is `rng` during a run.
        new = model.fresh().to(model.mean.device)
        training = model.recipe[0].training
        epochs = max(1, round(self.share * training.epochs))
        fit(new, split.retain, replace(training, epochs=epochs), rng, on_step)
        return new
