"""SSD: shrinks the weights that matter much more to the forget set than to all of the data."""

from dataclasses import dataclass
from typing import ClassVar, final

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from core.data.examples import Examples, join
from core.knobs import knob
from core.optim import OnStep, silent
from core.unlearners.base import Citation, Unlearner
from core.unlearners.two_sets import counted, rounds


@final
@dataclass(frozen=True, kw_only=True)
class SSD(Unlearner):
    """Where I_forget > alpha * I_all, w -> min(1, strength * I_all / I_forget) * w; no training.

    An importance I is the mean over batches of the squared gradient of their cross-entropy, so
    the size of the batches and their mixture matter: batches of one class have larger gradients.
    Differs: the batches are shuffled (the published code passes over lists sorted by class, which
    makes I_all too large to select anything).
    """

    cite: ClassVar = Citation(
        "Foster, Schoepf, Brintrup",
        2024,
        "Fast Machine Unlearning Without Retraining Through Selective Synaptic Dampening",
        "arxiv.org/abs/2308.07707",
    )
    needs: ClassVar = frozenset({"forget", "retain"})
    norms: ClassVar = "frozen"

    alpha: float = knob(
        30.0, 0.1, 1e6, "how many times larger an importance must be to be selected", log=True
    )
    strength: float = knob(
        1.0, 0.0, 10.0, "share of the ratio of importances that is left; at 0 weights vanish"
    )
    batch: int = knob(64, 1, 1024, "examples a gradient", unit="images")

    def run(self, model, teacher, split, target, rng, on_step):
        sets = split.forget[:], join(split.forget[:], split.retain[:])
        count = counted(on_step, sum(rounds(part, self.batch) for part in sets))
        wanted, all_of_it = (importance(model, part, self.batch, rng, count) for part in sets)
        chosen = 0
        with torch.no_grad():
            for w, forget, whole in zip(model.parameters(), wanted, all_of_it, strict=True):
                hit = forget > self.alpha * whole
                chosen += int(hit.sum())
                w[hit] *= (self.strength * whole[hit] / forget[hit]).clamp(max=1.0)
        return f"{chosen} of {sum(w.numel() for w in model.parameters())} weights were dampened."


def importance(
    model: torch.nn.Module,
    examples: Examples,
    batch: int,
    rng: torch.Generator,
    on_step: OnStep = silent,
) -> list[Tensor]:
    """For each weight, the mean over shuffled batches of the squared gradient of cross-entropy."""
    weights = list(model.parameters())
    totals, count = [torch.zeros_like(w) for w in weights], 0
    for b in examples.epoch(batch, rng):
        slopes = torch.autograd.grad(cross_entropy(model(b.x), b.y), weights)
        for total, slope in zip(totals, slopes, strict=True):
            total += slope.square()
        count += 1
        on_step(count, rounds(examples, batch))
    return [total / count for total in totals]
