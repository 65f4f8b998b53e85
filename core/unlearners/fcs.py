"""FCS: flatten the answer to forgotten images, contrast with retained ones, strengthen those."""

import math
from dataclasses import dataclass
from typing import ClassVar, final

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from core.knobs import knob
from core.losses import kl
from core.optim import descend
from core.unlearners.base import Citation, Unlearner
from core.unlearners.two_sets import counted, rounds


def contrast(forgotten: Tensor, retained: Tensor, t: float) -> Tensor:
    """Mean of -log softmax over retained images of the logits' product, over `t` (a row each).

    Smallest, at log m for m retained images, where a forgotten image is like all of them alike.
    """
    return -(forgotten @ retained.T / t).log_softmax(1).mean()


@final
@dataclass(frozen=True, kw_only=True)
class FCS(Unlearner):
    """One pass of KL(uniform || model) on the forget set; then in rounds a pass of contrast
    between logits of both sets, and one of cross-entropy on the retain set.

    It won the NeurIPS 2023 unlearning competition; the benchmark cited describes it. Made for
    single images: an answer that is uniform is not like gold's to a class it never saw.
    Differs: fewer rounds, with larger steps; each pass starts with fresh momentum; batch
    norm's statistics are kept; the gradient is clipped on the forget set.
    """

    cite: ClassVar = Citation("Cadet et al.", 2024, "Deep Unlearn", "arxiv.org/abs/2410.01276")
    needs: ClassVar = frozenset({"forget", "retain"})
    norms: ClassVar = "frozen"

    lr_forget: float = knob(0.005, 1e-5, 1.0, "SGD step size of the first pass", log=True)
    lr_contrast: float = knob(
        1e-3, 1e-6, 1.0, "SGD step size of contrast; it falls along a cosine", log=True
    )
    lr: float = knob(0.01, 1e-5, 1.0, "SGD step size on the retain set", log=True)
    epochs: int = knob(3, 1, 100, "rounds, each with a pass over the retain set")
    t: float = knob(1.15, 0.01, 100.0, "temperature of contrast", log=True)
    batch: int = knob(64, 1, 1024, "examples of each set a step")
    weight_decay: float = knob(0.01, 0.0, 0.1, "L2 penalty on the retain set", log=True)
    clip: float = knob(1.0, 1e-3, 100.0, "largest gradient norm on the forget set", log=True)

    def run(self, model, teacher, split, target, rng, on_step):
        forget = split.forget.batches(self.batch, rng)
        beside, retain = (split.retain.batches(self.batch, rng) for _ in range(2))
        n, m = rounds(split.forget, self.batch), rounds(split.retain, self.batch)
        step = counted(on_step, n + self.epochs * (n + m))

        def flatten():
            logits = model(next(forget).x)
            return kl(torch.full_like(logits, 1 / logits.shape[1]), logits)

        def push():
            with torch.no_grad():
                r = model(next(beside).x)
            return contrast(model(next(forget).x), r, self.t)

        def strengthen():
            r = next(retain)
            return cross_entropy(model(r.x), r.y)

        descend(model, flatten, steps=n, lr=self.lr_forget, clip=self.clip, on_step=step)
        for i in range(self.epochs):
            lr = self.lr_contrast * (1 + math.cos(math.pi * i / self.epochs)) / 2
            descend(model, push, steps=n, lr=lr, clip=self.clip, on_step=step)
            wd = self.weight_decay
            descend(model, strengthen, steps=m, lr=self.lr, weight_decay=wd, on_step=step)
