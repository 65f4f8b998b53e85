"""UNSIR: impairs the model with noise learnt to be least like the class, then repairs it."""

import math
from dataclasses import dataclass
from typing import ClassVar, final

import torch
from torch.nn.functional import cross_entropy

from core.data.targets import ForgetClasses
from core.knobs import knob
from core.optim import descend
from core.unlearners.base import Citation, Unlearner
from core.unlearners.noise import learn
from core.unlearners.shots import balanced
from core.unlearners.two_sets import counted


@final
@dataclass(frozen=True, kw_only=True)
class UNSIR(Unlearner):
    """Train on (noise, forgotten class) among retained images, then on the retained images alone.

    The noise N minimises -CE(N, forgotten class) + weight * N^2 against the original. No forgotten
    image is read, and of each retained class only a few.
    Differs: all noise images are used, with the forgotten class's own label (published code loops
    over the channels of a batch, so that three are used, all labelled 0); N^2 is a mean and not a
    sum over pixels, so its weight does not depend on the size of images; SGD with a clipped
    gradient takes the place of Adam in training.
    """

    cite: ClassVar = Citation(
        "Tarun et al.", 2023, "Fast Yet Effective Machine Unlearning", "arxiv.org/abs/2111.08947"
    )
    needs: ClassVar = frozenset({"retain"})
    levels: ClassVar = frozenset({"class"})

    shots: int = knob(259, 1, 10_000, "retained images read, of each class", log=True)
    noises: int = knob(135, 1, 1024, "noise images, over all forgotten classes")
    noise_steps: int = knob(45, 1, 1000, "Adam steps by which the noise is learnt")
    weight: float = knob(0.11, 0.0, 100.0, "penalty on the noise's mean square")
    share: float = knob(0.29, 0.01, 0.9, "share of noise in a batch while impairing")
    steps: int = knob(55, 1, 5000, "SGD steps of each of the two phases")
    impair: float = knob(0.037, 1e-5, 1.0, "SGD step size while impairing", log=True)
    repair: float = knob(0.0086, 1e-5, 1.0, "SGD step size while repairing", log=True)
    batch: int = knob(64, 1, 1024, "examples a step, noise included")
    clip: float = knob(8.7, 1e-3, 100.0, "largest gradient norm", log=True)

    def run(self, model, teacher, split, target, rng, on_step):
        assert isinstance(target, ForgetClasses)  # `levels` has seen to it
        shots = balanced(split.retain, self.shots * len(split.retain.y.unique()), rng)
        count = counted(on_step, self.noise_steps + 2 * self.steps)
        gone = torch.tensor(target.labels, device=shots.y.device)
        labels = gone[torch.arange(max(len(gone), self.noises)) % len(gone)]
        noise = learn(
            teacher, labels, -1, rng, steps=self.noise_steps, weight=self.weight, on_step=count
        )
        strange = min(len(noise), math.ceil(self.share * self.batch))
        batches = shots.batches(max(1, self.batch - strange), rng)

        def impair():
            r = next(batches)
            rows = torch.randperm(len(noise), generator=rng)[:strange].to(noise.device)
            x, y = torch.cat([r.x, noise[rows]]), torch.cat([r.y, labels[rows]])
            return cross_entropy(model(x), y)

        def repair():
            r = next(batches)
            return cross_entropy(model(r.x), r.y)

        for loss, lr in ((impair, self.impair), (repair, self.repair)):
            descend(model, loss, steps=self.steps, lr=lr, clip=self.clip, on_step=count)
