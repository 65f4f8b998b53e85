"""Boundary expand: moves forgotten images into a class of their own, then cuts that class off."""

import math
from dataclasses import dataclass
from typing import ClassVar, final

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from core.knobs import knob
from core.optim import descend
from core.unlearners.base import Citation, Unlearner

WON = 0.95
"""Share of a batch from which the new class holds it."""


@final
@dataclass(frozen=True, kw_only=True)
class BoundaryExpand(Unlearner):
    """Minimise cross-entropy to a new class k on the forget set; the head's k old rows remain.

    Without the new class the runner-up decides, which may be the forgotten class again: the note
    says how much the new class won.
    Differs: the new row starts as the part of the mean forgotten feature that no other row sees,
    not at random (with a random row, retained accuracy fell by 40 points); it ends early once a
    batch is held by the new class and not named by the old rows alone; the gradient is clipped.
    """

    cite: ClassVar = Citation(
        "Chen et al.", 2023, "Boundary Unlearning", "arxiv.org/abs/2303.11570"
    )
    caveat: ClassVar = (
        "At its defaults it forgets a class and loses about seven points of the others."
    )
    needs: ClassVar = frozenset({"forget"})
    norms: ClassVar = "frozen"

    lr: float = knob(0.002, 1e-5, 1.0, "SGD step size", log=True)
    epochs: int = knob(8, 1, 100, "passes over the forget set at most")
    batch: int = knob(64, 1, 1024, "examples a step")
    clip: float = knob(1.0, 1e-3, 100.0, "largest gradient norm", log=True)
    stop: float = knob(
        0.05, 0.0, 1.0, "batch accuracy of the old rows at which it ends", unit="fraction"
    )

    def run(self, model, teacher, split, target, rng, on_step):
        batches = split.forget.batches(self.batch, rng)
        with torch.no_grad():
            parts = split.forget.ordered(500)
            row = new_row(model.head, torch.cat([teacher.features(b.x) for b in parts]).mean(0))
        k, won, named = model.head.out_features, 0.0, 1.0

        def loss():
            nonlocal won, named
            f = next(batches)
            z = model.features(f.x)
            logits = torch.cat([model.logits(z), row(z)], 1)
            won = (logits.argmax(1) == k).double().mean().item()
            named = (logits[:, :k].argmax(1) == f.y).double().mean().item()
            return cross_entropy(logits, torch.full_like(f.y, k))

        descend(
            nn.ModuleList([model, row]),
            loss,
            steps=self.epochs * math.ceil(len(split.forget) / self.batch),
            lr=self.lr,
            clip=self.clip,
            stop=lambda step: won >= WON and named <= self.stop,
            on_step=on_step,
        )
        return f"The new class held {won:.0%} of the last batch before it was cut off."


def new_row(head: nn.Linear, mean: Tensor) -> nn.Linear:
    """One more row for `head`: the part of `mean` (d) that no row sees, as long as the rows are.

    Where the rows leave nothing unseen, the direction that they use least takes its place.
    """
    rows, mean = head.weight.detach().cpu().double(), mean.detach().cpu().double()
    axes = torch.linalg.svd(rows).Vh[min(len(rows), rows.shape[1] - 1) :]
    free = mean @ axes.T @ axes
    free = free if free.norm() > 1e-6 * mean.norm() else axes[0]
    row = nn.Linear(head.in_features, 1).to(head.weight)
    with torch.no_grad():
        row.weight.copy_(free / free.norm() * rows.norm(dim=1).mean())
        row.bias.copy_(head.bias.mean())
    return row
