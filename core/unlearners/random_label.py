"""Random label: teach the forget set wrong labels, drawn at random."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, final

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from core.data.examples import Batch, Examples, join
from core.knobs import knob
from core.losses import gone
from core.optim import descend
from core.unlearners.base import Citation, Unlearner


def draw(barred: Tensor, k: int, rng: torch.Generator) -> Tensor:
    """A label (n) for each row, uniform over the `k` classes that `barred` (n m) leaves."""
    odds = torch.ones(len(barred), k).scatter_(1, barred.cpu(), 0.0)
    return torch.multinomial(odds, 1, generator=rng).squeeze(1).to(barred.device)


@final
@dataclass(frozen=True, kw_only=True)
class RandomLabel(Unlearner):
    """Minimise cross-entropy to wrong labels on the forget set, then to true ones on the rest.

    The labels are drawn once. Orders: `sequential` passes over the forget set and then over the
    retain set in each epoch, `mixed` shuffles them together, `forget_only` reads no retain set.
    Differs: neither the true class nor any forgotten class is drawn (several codes draw from all
    k); batch norm's statistics are kept in all orders, and the gradient is clipped.
    """

    cite: ClassVar = Citation(
        "Graves, Nagisetty, Ganesh", 2021, "Amnesiac Machine Learning", "arxiv.org/abs/2010.10981"
    )
    needs: ClassVar = frozenset({"forget", "retain"})
    norms: ClassVar = "frozen"

    order: str = knob(
        "sequential",
        help="what is read, and in which order",
        choices=("sequential", "mixed", "forget_only"),
    )
    lr: float = knob(0.02, 1e-5, 1.0, "SGD step size", log=True)
    epochs: int = knob(2, 1, 100, "passes over what is read")
    batch: int = knob(64, 1, 1024, "examples a step")
    clip: float = knob(1.0, 1e-3, 100.0, "largest gradient norm", log=True)

    def run(self, model, teacher, split, target, rng, on_step):
        barred = gone(target, split.forget.y)
        forget = replace(split.forget, y=draw(barred, model.head.out_features, rng))
        parts = [forget]
        if self.order == "sequential":
            parts = [forget, split.retain]
        elif self.order == "mixed":
            parts = [join(forget[:], split.retain[:])]
        batches = self._batches(parts, rng)

        def loss():
            b = next(batches)
            return cross_entropy(model(b.x), b.y)

        steps = self.epochs * sum(math.ceil(len(part) / self.batch) for part in parts)
        descend(model, loss, steps=steps, lr=self.lr, clip=self.clip, on_step=on_step)

    def _batches(self, parts: list[Examples], rng: torch.Generator) -> Iterator[Batch]:
        while True:
            for part in parts:
                yield from part.epoch(self.batch, rng)
