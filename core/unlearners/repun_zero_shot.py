"""Zero-shot representation unlearning: the head's rows stand in for the retained features."""

import math
from dataclasses import dataclass
from typing import ClassVar, final

import torch

from core.data.targets import ForgetClasses
from core.knobs import knob
from core.unlearners.adam import adapt
from core.unlearners.base import Unlearner
from core.unlearners.compression import CITE, features, inserted, noisy, pull, rows


@final
@dataclass(frozen=True, kw_only=True)
class RepUnZeroShot(Unlearner):
    """Minimise |f(w) - w|^2 over the retained head rows w + beta |f(z) - w'|^2 over all pairs of a
    forgotten z and any head row w'.

    Only f, between body and head, is learnt. The further the features are from neural collapse,
    the less a head row says of its class, and the more retained accuracy it costs. Several layers
    have no reason to keep what lies off the rows. It hardly forgets single images.
    Differs: classes count as equally large, for how large they are is not to be had without the
    retain set; more passes, as in the form with a retain set.
    """

    cite: ClassVar = CITE
    needs: ClassVar = frozenset({"forget", "head"})
    norms: ClassVar = "frozen"

    hidden: int = knob(0, 0, 2, "hidden layers of f; without one it is linear, from the identity")
    width: int = knob(512, 1, 4096, "width of a hidden layer", unit="units", log=True)
    beta: float = knob(0.1, 0.0, 1e4, "weight of forgetting; the head rows have 1")
    scale: str = knob(
        "as is",
        help="head rows as they are, or stretched to the mean length of the forgotten features",
        choices=("as is", "match"),
    )
    noise: float = knob(0.0, 0.0, 10.0, "deviation of the noise on what f is given")
    samples: int = knob(1, 1, 64, "draws of that noise")
    lr: float = knob(0.003, 1e-5, 1.0, "Adam step size", log=True)
    epochs: int = knob(200, 1, 1000, "passes over the forget set")
    batch: int = knob(256, 1, 4096, "features a step")

    def run(self, model, teacher, split, target, rng, on_step):
        f, gone = inserted(model, self.hidden, self.width), features(teacher, split.forget)
        heads = teacher.head.weight.detach()
        if self.scale == "match":
            heads = heads * gone.norm(dim=1).mean() / heads.norm(dim=1).mean()
        held = torch.ones(len(heads), dtype=torch.bool, device=heads.device)
        if isinstance(target, ForgetClasses):
            held[list(target.labels)] = False
        kept, gones = heads[held], rows(gone, self.batch, rng)

        def loss():
            error = (f(noisy(kept, self.noise, self.samples, rng)) - kept).square().sum(-1).mean()
            z = noisy(next(gones), self.noise, self.samples, rng)
            return error + self.beta * pull(f(z), heads)

        steps = self.epochs * math.ceil(len(gone) / self.batch)
        adapt(f, loss, steps=steps, lr=self.lr, on_step=on_step)
