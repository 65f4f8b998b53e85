"""Gradient ascent: climb the loss of the forget set until it is no longer recognised."""

import math
from dataclasses import dataclass
from typing import ClassVar, final

from torch.nn.functional import cross_entropy

from core.knobs import knob
from core.optim import descend
from core.unlearners.base import Citation, Unlearner


@final
@dataclass(frozen=True, kw_only=True)
class GradientAscent(Unlearner):
    """Maximise cross-entropy on the forget set (also called NegGrad).

    The loss has no upper bound and its gradient grows on the way, so every gradient is clipped,
    and the climb ends at the first batch of which little enough is still recognised.
    Differs: that early stop; the paper runs a fixed number of steps.
    """

    cite: ClassVar = Citation(
        "Golatkar et al.", 2020, "Eternal Sunshine of the Spotless Net", "arxiv.org/abs/1911.04933"
    )
    needs: ClassVar = frozenset({"forget"})
    norms: ClassVar = "frozen"

    lr: float = knob(0.005, 1e-5, 1.0, "SGD step size", log=True)
    epochs: int = knob(50, 1, 100, "passes over the forget set at most")
    batch: int = knob(64, 1, 1024, "examples a step")
    clip: float = knob(1.0, 1e-3, 100.0, "largest gradient norm", log=True)
    momentum: float = knob(0.0, 0.0, 0.99, "momentum")
    stop: float = knob(
        0.03, 0.0, 1.0, "batch accuracy at which the climb ends, for classes", unit="fraction"
    )
    stop_images: float = knob(
        0.9, 0.0, 1.0, "the same for single images: about what unseen ones reach", unit="fraction"
    )

    def run(self, model, teacher, split, target, rng, on_step):
        batches = split.forget.batches(self.batch, rng)
        # A forgotten image may well be named rightly, as any unseen image of its class is.
        enough = self.stop if target.level == "class" else self.stop_images
        accuracy = 1.0

        def loss():
            nonlocal accuracy
            f = next(batches)
            logits = model(f.x)
            accuracy = (logits.argmax(1) == f.y).float().mean().item()
            return -cross_entropy(logits, f.y)

        descend(
            model,
            loss,
            steps=self.epochs * math.ceil(len(split.forget) / self.batch),
            lr=self.lr,
            momentum=self.momentum,
            clip=self.clip,
            stop=lambda step: accuracy <= enough,
            on_step=on_step,
        )
