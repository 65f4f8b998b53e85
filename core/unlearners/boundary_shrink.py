"""Boundary shrink: relabel each forgotten image with the nearest other class, and retrain it."""

import math
from dataclasses import dataclass, replace
from typing import ClassVar, final

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from core.knobs import knob
from core.losses import gone, without
from core.models.classifier import Classifier
from core.optim import descend
from core.unlearners.base import Citation, Unlearner


def attack(teacher: Classifier, x: Tensor, y: Tensor, eps: float) -> Tensor:
    """`x` in [0, 1] moved by `eps` a pixel against label `y`, on the grid of 8-bit images.

    The fast gradient sign method (Goodfellow et al. 2015, arxiv.org/abs/1412.6572).
    """
    x = x.detach().requires_grad_(True)
    (slope,) = torch.autograd.grad(cross_entropy(teacher(x), y), x)
    moved = (x.detach() + eps * slope.sign()).clamp(0, 1)
    return moved.mul(255).round().div(255)


@final
@dataclass(frozen=True, kw_only=True)
class BoundaryShrink(Unlearner):
    """Minimise cross-entropy to the class across the nearest boundary, found by one attack step.

    The original is attacked, once, so the labels stay the same throughout.
    Differs: where the attack ends in a forgotten class, the published code keeps that label and
    so teaches it again; here `on_fail` decides, and takes the original's runner-up class. The
    gradient is clipped.
    """

    cite: ClassVar = Citation(
        "Chen et al.", 2023, "Boundary Unlearning", "arxiv.org/abs/2303.11570"
    )
    needs: ClassVar = frozenset({"forget"})
    norms: ClassVar = "frozen"

    eps: float = knob(0.1, 0.0, 1.0, "size of the attack, in units of the pixel range")
    on_fail: str = knob(
        "runner_up",
        help="the label where the attack fails",
        choices=("runner_up", "keep", "drop"),
    )
    lr: float = knob(0.001, 1e-5, 1.0, "SGD step size", log=True)
    epochs: int = knob(8, 1, 100, "passes over the forget set")
    batch: int = knob(64, 1, 1024, "examples a step")
    clip: float = knob(1.0, 1e-3, 100.0, "largest gradient norm", log=True)

    def run(self, model, teacher, split, target, rng, on_step):
        labels, failed = self.relabel(teacher, split.forget, target)
        forget = replace(split.forget, y=labels)
        if self.on_fail == "drop":
            forget = forget[~failed]
        reached = f"The attack reached another class for {(~failed).float().mean():.0%} of images."
        if not len(forget):
            return f"{reached} Nothing was left to train on."
        batches = forget.batches(self.batch, rng)

        def loss():
            f = next(batches)
            return cross_entropy(model(f.x), f.y)

        steps = self.epochs * math.ceil(len(forget) / self.batch)
        descend(model, loss, steps=steps, lr=self.lr, clip=self.clip, on_step=on_step)
        return reached

    def relabel(self, teacher, forget, target) -> tuple[Tensor, Tensor]:
        """The new label of each forgotten image (n), and whether its attack failed (n, bool)."""
        labels, failures = [], []
        for f in forget.ordered(self.batch):
            barred = gone(target, f.y)
            found = teacher(attack(teacher, f.x, f.y, self.eps)).argmax(1)
            failed = (found[:, None] == barred).any(1)
            if self.on_fail == "runner_up":
                found = torch.where(failed, without(teacher(f.x), barred).argmax(1), found)
            labels.append(found)
            failures.append(failed)
        return torch.cat(labels), torch.cat(failures)
