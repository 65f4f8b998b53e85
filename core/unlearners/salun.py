"""SalUn: wrong labels, taught only to the weights that matter most for the forget set."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import ClassVar, final

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from core.data.examples import Batch
from core.knobs import knob
from core.losses import gone
from core.models.classifier import Classifier
from core.optim import descend
from core.unlearners.base import Citation, Unlearner
from core.unlearners.random_label import draw
from core.unlearners.two_sets import rounds


def saliency(model: Classifier, batches: Iterable[Batch], share: float) -> list[Tensor]:
    """For each parameter, which entries (bool) are in the top share of all in absolute slope.

    The slope is that of the cross-entropy summed over all batches. By rank, so that their number
    is exact.
    """
    weights = list(model.parameters())
    slopes = [torch.zeros_like(p) for p in weights]
    for b in batches:
        loss = cross_entropy(model(b.x), b.y, reduction="sum")
        for total, slope in zip(slopes, torch.autograd.grad(loss, weights), strict=True):
            total += slope
    flat = torch.cat([s.abs().flatten() for s in slopes])
    chosen = torch.zeros_like(flat, dtype=torch.bool)
    chosen[flat.argsort(descending=True, stable=True)[: round(share * len(flat))]] = True
    parts = chosen.split([p.numel() for p in weights])
    return [part.view_as(p) for part, p in zip(parts, weights, strict=True)]


@final
@dataclass(frozen=True, kw_only=True)
class SalUn(Unlearner):
    """Random label (here: each epoch the forget set, then the retain set) under a mask on weights.

    The mask is the top share of |gradient of the forget set's loss|; all other weights stay what
    they were, bit for bit: with weight decay, masked gradients alone would not see to it.
    Differs: as in random label here, no forgotten class is drawn, batch norm's statistics are
    kept, and the gradient, once masked, is clipped.
    """

    cite: ClassVar = Citation("Fan et al.", 2024, "SalUn", "arxiv.org/abs/2310.12508")
    needs: ClassVar = frozenset({"forget", "retain"})
    norms: ClassVar = "frozen"

    rho: float = knob(0.5, 0.001, 1.0, "share of all weights that may move", unit="fraction")
    lr: float = knob(0.02, 1e-5, 1.0, "SGD step size", log=True)
    epochs: int = knob(2, 1, 100, "passes over both sets")
    batch: int = knob(64, 1, 1024, "examples a step")
    weight_decay: float = knob(5e-4, 0.0, 0.1, "L2 penalty on the weights that move", log=True)
    clip: float = knob(1.0, 1e-3, 100.0, "largest gradient norm", log=True)

    def run(self, model, teacher, split, target, rng, on_step):
        labels = draw(gone(target, split.forget.y), model.head.out_features, rng)
        parts = [replace(split.forget, y=labels), split.retain]
        masks = saliency(model, split.forget.ordered(self.batch), self.rho)
        batches = (b for _ in range(self.epochs) for p in parts for b in p.epoch(self.batch, rng))
        weights = list(model.parameters())
        kept = [p.detach().clone() for p in weights]

        def loss():
            b = next(batches)
            return cross_entropy(model(b.x), b.y)

        @torch.no_grad()
        def restore(step: int) -> bool:
            for p, old, mask in zip(weights, kept, masks, strict=True):
                p.copy_(torch.where(mask, p, old))
            return False

        hooks = [_masked(p, mask) for p, mask in zip(weights, masks, strict=True)]
        descend(
            model,
            loss,
            steps=self.epochs * sum(rounds(part, self.batch) for part in parts),
            lr=self.lr,
            weight_decay=self.weight_decay,
            clip=self.clip,
            stop=restore,
            on_step=on_step,
        )
        for hook in hooks:
            hook.remove()


def _masked(weight: nn.Parameter, mask: Tensor):
    return weight.register_hook(lambda slope: slope * mask)
