"""LoTUS: blur the original's answer on the forget set the more, the more of it is still named."""

import math
from dataclasses import dataclass
from typing import ClassVar, final

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, one_hot

from core.data.examples import join
from core.knobs import knob
from core.optim import descend
from core.unlearners.base import Citation, Unlearner
from core.unlearners.two_sets import named, rounds, some


def gumbel(logits: Tensor, rng: torch.Generator) -> Tensor:
    """The logits (n k) plus standard Gumbel noise: their largest is a draw from the softmax."""
    u = torch.rand(logits.shape, generator=rng).clamp_(1e-10, 1 - 1e-7)
    return logits - (-u.log()).log().to(logits)


def temperature(excess: float, alpha: float) -> float:
    """exp(alpha * excess), for the share of the forget set that is named beyond unseen images."""
    return math.exp(alpha * excess)


@final
@dataclass(frozen=True, kw_only=True)
class Lotus(Unlearner):
    """Minimise CE to targets drawn from the original's answer: on the forget set its Gumbel-softmax
    at a temperature of exp(alpha * accuracy there), on a share of the retain set a drawn label.

    Of a class, unseen images would be named never, so all accuracy is excess. Single images would
    need images that the original has not seen: not served.
    Differs: it ends at the first epoch after which at most `stop` is still named, for a temperature
    of 1 teaches the class again, and the published end is never reached; accuracy is not rounded;
    SGD with clipped gradients rather than AdamW; batch norm's statistics are kept.
    """

    cite: ClassVar = Citation("Spartalis et al.", 2025, "LoTUS", "arxiv.org/abs/2503.18314")
    caveat: ClassVar = (
        "At its defaults the seed decides whether a class goes: two of three left most of it named."
    )
    needs: ClassVar = frozenset({"forget", "retain"})
    levels: ClassVar = frozenset({"class"})
    norms: ClassVar = "frozen"

    alpha: float = knob(8.0, 0.0, 20.0, "how fast the temperature rises with what is still named")
    lr: float = knob(0.01, 1e-5, 1.0, "SGD step size", log=True)
    epochs: int = knob(10, 1, 100, "passes over what is read, at most")
    share: float = knob(0.3, 0.01, 1.0, "how much of the retain set is read", unit="fraction")
    batch: int = knob(64, 1, 1024, "examples a step")
    clip: float = knob(1.0, 1e-3, 100.0, "largest gradient norm", log=True)
    stop: float = knob(0.05, 0.0, 1.0, "accuracy at which it ends", unit="fraction")

    def run(self, model, teacher, split, target, rng, on_step):
        pool = join(split.forget[:], some(split.retain, self.share, rng))
        batches, lap = pool.batches(self.batch, rng), rounds(pool, self.batch)
        excess = named(model, split.forget)

        def loss():
            b = next(batches)
            with torch.no_grad():
                noisy = gumbel(teacher(b.x), rng)
            soft = (noisy / temperature(excess, self.alpha)).softmax(1)
            drawn = one_hot(noisy.argmax(1), noisy.shape[1]).to(noisy)
            forgotten = torch.isin(b.ids, split.forget.ids)[:, None]
            return cross_entropy(model(b.x), torch.where(forgotten, soft, drawn))

        def stop(step: int) -> bool:
            nonlocal excess
            if step % lap:
                return False
            excess = named(model, split.forget)
            return excess <= self.stop

        taken = descend(
            model,
            loss,
            steps=self.epochs * lap,
            lr=self.lr,
            clip=self.clip,
            stop=stop,
            on_step=on_step,
        )
        return f"Ended after {taken // lap} of {self.epochs} epochs with {excess:.1%} still named."
