"""LUV: climbs the loss of a few forgotten images' mixed features, and repairs on a few others."""

from dataclasses import dataclass
from typing import ClassVar, final

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, one_hot

from core.knobs import knob
from core.optim import descend
from core.unlearners.base import Citation, Unlearner
from core.unlearners.shots import balanced, sample


@final
@dataclass(frozen=True, kw_only=True)
class LUV(Unlearner):
    """In turn maximise CE(head(mixed features), mixed labels) and minimise CE on retained images.

    Few-shot label unlearning; an audit of vertical federated learning calls it `Target`. Mixed
    are the penultimate features of the same few images in two orders, a and b: m a + (1 - m) b,
    with one share m a step.
    Differs: one network takes the place of several parties'; the retained images are the same
    number of each class, and there is no momentum for the two kinds of step to share; gradients
    are clipped, and the climb ends when the few forgotten images are no longer named.
    """

    cite: ClassVar = Citation(
        "Gu et al.", 2026, "Few-Shot Label Unlearning", "arxiv.org/abs/2410.10922"
    )
    needs: ClassVar = frozenset({"forget", "retain"})
    norms: ClassVar = "frozen"

    shots: int = knob(40, 1, 10_000, "forgotten images read, and retained ones", log=True)
    mix: float = knob(1.0, 0.0, 1.0, "m is drawn evenly from [1 - mix, 1]; at 0 nothing is mixed")
    lr: float = knob(0.01, 1e-5, 1.0, "SGD step size", log=True)
    steps: int = knob(200, 1, 5000, "SGD steps at most, of both kinds together")
    clip: float = knob(1.0, 1e-3, 100.0, "largest gradient norm", log=True)
    stop: float = knob(
        0.05, 0.0, 1.0, "accuracy on the forgotten shots at which it ends", unit="fraction"
    )

    def run(self, model, teacher, split, target, rng, on_step):
        f = sample(split.forget, self.shots, rng).float()
        r = balanced(split.retain, self.shots, rng).float()
        k, named, climbs = model.head.out_features, 1.0, False

        def loss():
            nonlocal named, climbs
            climbs = not climbs
            if not climbs:
                return cross_entropy(model(r.x), r.y)
            z = model.features(f.x)
            named = (model.logits(z.detach()).argmax(1) == f.y).double().mean().item()
            share = 1 - self.mix * torch.rand(1, generator=rng).item()
            order = torch.randperm(len(f.y), generator=rng).to(f.y.device)
            mixed, goal = mixup(z, one_hot(f.y, k).to(z), share, order)
            return -cross_entropy(model.logits(mixed), goal)

        descend(
            model,
            loss,
            steps=self.steps,
            lr=self.lr,
            momentum=0.0,
            clip=self.clip,
            # Asked after a repair, for the last word is the retained images'.
            stop=lambda step: not climbs and named <= self.stop,
            on_step=on_step,
        )


def mixup(z: Tensor, y: Tensor, share: float, order: Tensor) -> tuple[Tensor, Tensor]:
    """Features (n d) and label distributions (n k): each row's `share`, the rest another's."""
    return share * z + (1 - share) * z[order], share * y + (1 - share) * y[order]
