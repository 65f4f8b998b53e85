"""NegGrad+: descend on the retain set and climb on the forget set, in the same step."""

from dataclasses import dataclass
from typing import ClassVar, final

from torch.nn.functional import cross_entropy

from core.knobs import knob
from core.losses import log_odds
from core.optim import descend
from core.unlearners.base import Citation, Unlearner
from core.unlearners.two_sets import climb, still


@final
@dataclass(frozen=True, kw_only=True)
class NegGradPlus(Unlearner):
    """Minimise alpha * CE(retain) + (1 - alpha) * log odds(forget), a batch of each a step.

    At alpha = 1 this is fine-tuning, bit for bit.
    Differs: log odds instead of -CE, whose slope vanishes on images that the model is sure of, so
    that it was luck whether the climb ever began; it pauses at a batch of which little enough is
    still recognised, and the gradient is clipped; forgotten images pass by batch norm's running
    statistics, which only retained ones move; no pull towards the original's weights, which the
    authors' code adds.
    """

    cite: ClassVar = Citation(
        "Kurmanji et al.", 2023, "Towards Unbounded Machine Unlearning", "arxiv.org/abs/2302.09880"
    )
    needs: ClassVar = frozenset({"forget", "retain"})

    alpha: float = knob(0.9, 0.0, 1.0, "weight of the retain loss; the rest goes to the climb")
    lr: float = knob(0.02, 1e-5, 1.0, "SGD step size", log=True)
    steps: int = knob(150, 1, 5000, "SGD steps")
    batch: int = knob(128, 1, 1024, "retain examples a step")
    batch_forget: int = knob(32, 1, 1024, "forget examples a step")
    weight_decay: float = knob(0.0, 0.0, 0.1, "L2 penalty", log=True)
    clip: float = knob(1.0, 1e-3, 1000.0, "largest gradient norm", log=True)
    stop: float = knob(
        0.03, 0.0, 1.0, "batch accuracy at which the climb pauses, for classes", unit="fraction"
    )
    stop_images: float = knob(
        0.9, 0.0, 1.0, "the same for single images: about what unseen ones reach", unit="fraction"
    )

    def run(self, model, teacher, split, target, rng, on_step):
        # A generator of its own: the retain set comes in the order in which fine-tuning has it.
        forget = split.forget.batches(self.batch_forget, rng.clone_state())
        retain = split.retain.batches(self.batch, rng)
        floor = self.stop if target.level == "class" else self.stop_images

        def loss():
            f, r = next(forget), next(retain)
            logits = still(model, f.x)
            gone = climb(-log_odds(logits, f.y).mean(), logits, f.y, floor)
            return self.alpha * cross_entropy(model(r.x), r.y) + (1 - self.alpha) * gone

        descend(
            model,
            loss,
            steps=self.steps,
            lr=self.lr,
            weight_decay=self.weight_decay,
            clip=self.clip,
            on_step=on_step,
        )
