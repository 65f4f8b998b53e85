"""Fisher forgetting: adds noise to the weights that the retain set has no need of."""

from dataclasses import dataclass
from typing import ClassVar, final

import torch
from torch import Tensor
from torch.func import functional_call, jacrev, vmap

from core.data.targets import ForgetClasses
from core.knobs import knob
from core.models.classifier import Classifier
from core.unlearners.base import Citation, Unlearner
from core.unlearners.shots import sample

ROW = 1e-4
"""Variance of a forgotten class's row in the head, before the head's factor of ten."""


@final
@dataclass(frozen=True, kw_only=True)
class FisherForgetting(Unlearner):
    """w -> w + N(0, alpha * min(1 / F, 1000)), F the diagonal Fisher information of the retain set.

    F is the mean over images of sum_k p_k * (d log p_k / dw)^2, an image at a time; the variance
    is averaged over a weight's input dimension, and ten times as large for the head (where 1 / F
    is capped at 100) and for vectors. A forgotten class's row of the head starts from zero: most
    of the forgetting of a class is due to that row, not to the noise, and where all other logits
    are negative the row still wins.
    Differs: F is estimated on `images` of the retain set; the head is known by its name (published
    code takes any tensor with k rows for it).
    """

    cite: ClassVar = Citation(
        "Golatkar et al.", 2020, "Eternal Sunshine of the Spotless Net", "arxiv.org/abs/1911.04933"
    )
    needs: ClassVar = frozenset({"retain", "head"})
    norms: ClassVar = "frozen"

    alpha: float = knob(3e-7, 0.0, 1e-2, "scale of the noise's variance; at 0 there is none")
    row: str = knob("zero", help="a forgotten class's row of the head", choices=("zero", "keep"))
    images: int = knob(400, 1, 10_000, "retained images that F is estimated on", log=True)
    batch: int = knob(16, 1, 256, "images whose gradients are held at once", unit="images")

    def run(self, model, teacher, split, target, rng, on_step):
        parts = list(sample(split.retain, self.images, rng).ordered(self.batch))
        totals: dict[str, Tensor] = {}
        for done, r in enumerate(parts):
            for name, value in information(teacher, r.x).items():
                totals[name] = totals.get(name, 0) + value
            on_step(done + 1, len(parts))
        images = sum(len(r.y) for r in parts)
        rows = list(target.labels) if isinstance(target, ForgetClasses) else []
        for name, w in model.named_parameters():
            var = self.variance(name, totals[name] / images)
            middle = w.detach().clone()
            if name.startswith("head.") and self.row == "zero":
                var[rows], middle[rows] = 10 * ROW, 0.0
            noise = torch.randn(w.shape, generator=rng).to(w.device)
            w.data.copy_(middle + var.sqrt() * noise)

    def variance(self, name: str, fisher: Tensor) -> Tensor:
        """The noise's variance for the tensor `name`, of the shape of its information `fisher`."""
        head = name.startswith("head.")
        var = self.alpha * (1 / (fisher + 1e-8)).clamp(max=1e2 if head else 1e3)
        if var.ndim > 1:
            var = var.mean(1, keepdim=True).expand_as(var).clone()
        return var * (10 if head or var.ndim == 1 else 1)


def information(model: Classifier, x: Tensor) -> dict[str, Tensor]:
    """Sum over the images `x` of sum_k p_k * (d log p_k / dw)^2, for each weight w by name."""
    weights = {name: p.detach() for name, p in model.named_parameters()}
    rest = dict(model.named_buffers())

    def answer(weights: dict[str, Tensor], image: Tensor) -> Tensor:
        return functional_call(model, (weights, rest), (image[None],))[0].log_softmax(0)

    slopes = vmap(jacrev(answer), (None, 0))(weights, x)
    p = model(x).detach().softmax(1)
    return {name: torch.einsum("nk,nk...->...", p, s.square()) for name, s in slopes.items()}
