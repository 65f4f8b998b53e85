"""Representation unlearning: a map behind the body keeps what is retained and blurs the rest."""

import math
from dataclasses import dataclass
from typing import ClassVar, final

import torch

from core.knobs import knob
from core.unlearners.adam import adapt
from core.unlearners.base import Unlearner
from core.unlearners.compression import CITE, features, inserted, noisy, pull, rows


@final
@dataclass(frozen=True, kw_only=True)
class RepUn(Unlearner):
    """Minimise |f(z) - z|^2 / d on retained z + beta |f(z) - z'|^2 on pairs of a forgotten z and
    any z' of the training set: every forgotten code is pulled to the mean of all features (n d).

    Only f, between body and head, is learnt; what the body says is the original's to the bit. All
    forgotten codes end up alike, which a probe that is not linear may notice. A linear f cannot
    tell single images from the retained ones, and hardly forgets them.
    Differs: more passes, for a small forget set has few batches a pass.
    """

    cite: ClassVar = CITE
    needs: ClassVar = frozenset({"forget", "retain"})
    norms: ClassVar = "frozen"

    hidden: int = knob(0, 0, 2, "hidden layers of f; without one it is linear, from the identity")
    width: int = knob(512, 1, 4096, "width of a hidden layer", unit="units", log=True)
    beta: float = knob(0.01, 0.0, 1e4, "weight of forgetting; the retained features have 1")
    per: str = knob(
        "feature",
        help="whether the retained error is averaged over features or summed, as the other is",
        choices=("feature", "vector"),
    )
    noise: float = knob(0.0, 0.0, 10.0, "deviation of the noise on what f is given")
    samples: int = knob(1, 1, 64, "draws of that noise")
    lr: float = knob(0.001, 1e-5, 1.0, "Adam step size", log=True)
    epochs: int = knob(50, 1, 1000, "passes over the forget set")
    batch: int = knob(256, 1, 4096, "features of each set a step")

    def run(self, model, teacher, split, target, rng, on_step):
        f = inserted(model, self.hidden, self.width)
        gone, kept = features(teacher, split.forget), features(teacher, split.retain)
        gones, kepts = rows(gone, self.batch, rng), rows(kept, self.batch, rng)
        anys = rows(torch.cat([kept, gone]), self.batch, rng)

        def loss():
            z, r = next(gones), next(kepts)
            error = (f(noisy(r, self.noise, self.samples, rng)) - r).square()
            error = error.mean() if self.per == "feature" else error.sum(-1).mean()
            blur = pull(f(noisy(z, self.noise, self.samples, rng)), next(anys))
            return error + self.beta * blur

        steps = self.epochs * math.ceil(len(gone) / self.batch)
        adapt(f, loss, steps=steps, lr=self.lr, on_step=on_step)
