"""Structure: how features lie to fixed directions, and what keeps them lying so."""

from collections.abc import Iterable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity, cross_entropy, normalize

from core.data.examples import Batch
from core.losses import log_odds
from core.models.classifier import Classifier, pool
from core.models.recode import Recode

__support__ = True


class Terms(NamedTuple):
    """The five parts of the loss (scalars), and the share of the forgotten images still named."""

    delete: Tensor
    retain: Tensor
    align: Tensor
    drift: Tensor
    elastic: Tensor
    named: float


def structure(z: Tensor, anchors: Tensor) -> Tensor:
    """Cosines (n k) of features (n d) with the anchors (k d), which are of unit length."""
    return normalize(z) @ anchors.T


def misalignment(before: Tensor, after: Tensor) -> Tensor:
    """1 - the mean cosine of a sample's structure before and after (n k), in [0, 2]."""
    return 1 - cosine_similarity(before, after).mean()


def importance(
    model: Classifier, anchors: Tensor, batches: Iterable[tuple[Tensor, Tensor]]
) -> list[Tensor]:
    """For each weight of the body the mean over samples of |d misalignment / dw|.

    The batches are images (n c h w) and their structures before (n k); a batch has one gradient.
    Where nothing has moved yet the misalignment is at its minimum, and no weight has importance.
    """
    weights = list(model.body.parameters())
    totals, n = [torch.zeros_like(w) for w in weights], 0
    for x, before in batches:
        loss = misalignment(before, structure(model.features(x), anchors))
        for total, slope in zip(totals, torch.autograd.grad(loss, weights), strict=True):
            total += len(x) * slope.abs()
        n += len(x)
    return [total / n for total in totals]


def drift(weights: Iterable[Tensor], start: Iterable[Tensor], heavy: Iterable[Tensor]) -> Tensor:
    """Half the sum over all weights of importance * (weight - where it started)^2."""
    parts = [(i * (w - v).square()).sum() for w, v, i in zip(weights, start, heavy, strict=True)]
    return torch.stack(parts).sum() / 2


def elastic_net(head: Tensor) -> Tensor:
    """0.99 |W|_1 + 0.005 |W|_F^2 of a head's weights."""
    return 0.99 * head.abs().sum() + 0.005 * head.square().sum()


def near_identity(made: Recode, chance: float) -> Recode:
    """`made`, of square layers, with all but the share `chance` of its weights the identity's."""
    with torch.no_grad():
        for p in made.parameters():
            goal = torch.eye(len(p)) if p.ndim == 2 else torch.zeros(len(p))
            p.lerp_(goal.to(p), 1 - chance)
    return made


class Guard:
    """The loss of one run: what it is compared with is measured here, before the first step."""

    def __init__(
        self, model: Classifier, teacher: Classifier, others: Batch, anchors: Tensor, batch: int
    ) -> None:
        self.model, self.others, self.anchors = model, others, anchors
        parts = others.x.split(batch)
        with torch.no_grad():
            lies = [structure(teacher.features(x), anchors) for x in parts]
        self.before = torch.cat(lies)
        self.heavy = importance(model, anchors, zip(parts, lies, strict=True))
        self.start = [w.detach().clone() for w in model.body.parameters()]

    def terms(self, f: Batch, rows: Tensor) -> Terms:
        """For forgotten images `f` and the adversarial ones at `rows`.

        A forgotten image that is still named is pushed where it is named the more surely: before
        the projector or behind it. Before it alone, the projector may learn to undo it all.
        """
        model, x, y = self.model, self.others.x[rows], self.others.y[rows]
        share = len(f.y) / (len(f.y) + len(y))
        z = next(pool(h) for name, h in model.stages(f.x) if name == "penultimate")
        logits, codes = model.behind(z)[1], model.features(x)
        named = (logits.argmax(1) == f.y).to(logits)
        odds = torch.maximum(log_odds(model.logits(z), f.y), log_odds(logits, f.y))
        return Terms(
            share * (named * odds).sum() / named.sum().clamp_min(1),
            (1 - share) * cross_entropy(model.logits(codes), y),
            misalignment(self.before[rows], structure(codes, self.anchors)),
            drift(model.body.parameters(), self.start, self.heavy),
            elastic_net(model.head.weight),
            float(named.mean()),
        )
