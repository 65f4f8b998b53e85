"""POUR-D: distils the projected features into the body, on the forget set alone."""

import math
from dataclasses import dataclass, field
from typing import ClassVar, final

import torch

from core.data.targets import ForgetClasses
from core.knobs import knob
from core.optim import descend
from core.unlearners.base import Unlearner
from core.unlearners.pour import CITE, head_rows, projection, settle

NAMED, FLAT, TINY, WINDOW = 0.01, 0.05, 1e-12, 20
"""It may stop where a pass (of at least WINDOW steps) names at most the share NAMED of the forget
set and lowers the loss by at most the share FLAT, or to the share TINY of the first one."""


@final
@dataclass(frozen=True, kw_only=True)
class PourD(Unlearner):
    """Minimise |f(x) - P f_original(x)|^2 over the forget set, P as in POUR-P.

    The head and the running statistics stay, no weight decays and nothing is augmented: all that
    moves the retained classes are the weights they share with the forget set. The damage is done
    early and mends as the loss falls, so it stops late: after `steps`, or earlier once the forget
    set is no longer named and the loss is flat.

    Differs: the gradient is clipped, for unclipped the first steps cost up to 26 points of
    retained accuracy; the forgotten logit is kept, so that the features have to do the forgetting.
    """

    cite: ClassVar = CITE
    needs: ClassVar = frozenset({"forget", "head"})
    levels: ClassVar = frozenset({"class"})
    norms: ClassVar = "frozen"

    lr: float = knob(5e-3, 1e-6, 1.0, "SGD step size at first; it falls along a cosine", log=True)
    steps: int = knob(200, 1, 5000, "SGD steps at most")
    batch: int = knob(32, 1, 1024, "forget examples a step")
    clip: float = knob(5.0, 1e-3, 1000.0, "largest gradient norm", log=True)
    centring: str = knob(
        "auto",
        help="subtract the mean head row first; auto does where it is over 5 % of a row's length",
        choices=("auto", "on", "off"),
    )
    logit: str = knob(
        "keep",
        help="the forgotten class's logit afterwards: minus infinity, row and bias zero, or as is",
        choices=("mask", "zero", "keep"),
    )

    def run(self, model, teacher, split, target, rng, on_step):
        assert isinstance(target, ForgetClasses)  # `levels` has seen to it
        rows = head_rows(teacher, target.labels, self.centring)
        project = projection(teacher, rows, target.labels)
        model.head.requires_grad_(False)
        batches = split.forget.batches(self.batch, rng)
        watch = _Watch(max(WINDOW, math.ceil(len(split.forget) / self.batch)))

        def loss():
            f = next(batches)
            with torch.no_grad():
                goal = project(teacher.features(f.x))
            z = model.features(f.x)
            away = (z - goal).square().sum(1).mean()
            named = model.logits(z.detach()).argmax(1) == f.y
            watch.add(away.item(), named.double().mean().item())
            return away

        taken = descend(
            model,
            loss,
            steps=self.steps,
            lr=self.lr,
            clip=self.clip,
            cosine=True,
            stop=watch.enough,
            on_step=on_step,
        )
        settle(model, target.labels, self.logit)
        return f"Stopped after {taken} of {self.steps} steps." if taken < self.steps else None


@dataclass
class _Watch:
    """Loss and share still named at each step; seen before the step, they cost no extra pass."""

    window: int
    losses: list[float] = field(default_factory=list)
    named: list[float] = field(default_factory=list)

    def add(self, loss: float, named: float) -> None:
        self.losses.append(loss)
        self.named.append(named)

    def enough(self, done: int) -> bool:
        """Whether, by the last window against the one before, there is nothing left to gain."""
        w = self.window
        if done % w or done < 2 * w:
            return False
        last, before = sum(self.losses[-w:]), sum(self.losses[-2 * w : -w])
        flat = last >= (1 - FLAT) * before or last <= TINY * w * self.losses[0]
        return flat and sum(self.named[-w:]) <= NAMED * w
