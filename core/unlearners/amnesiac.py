"""Amnesiac: undoes the updates of all batches that held a forgotten image, then repairs."""

import math
from dataclasses import dataclass
from typing import ClassVar, final

import torch
from torch.nn.functional import cross_entropy

from core.data.examples import join
from core.knobs import knob
from core.optim import descend
from core.unlearners.base import Citation, Unlearner
from core.unlearners.two_sets import counted


@final
@dataclass(frozen=True, kw_only=True)
class Amnesiac(Unlearner):
    """w -> w - sum of the updates by batches with a forgotten image; then train on the retain set.

    An update depends on all before it, so that to take some away damages the rest; made for a few
    images. A class is in nearly every batch: undoing them all leaves the weights of the beginning,
    and what the model then knows it has from the repair. Nothing of the original is used.
    Differs: as no update was stored when the original was trained, a new network is trained in the
    call, for few epochs; published code stores its updates on the disk.
    """

    cite: ClassVar = Citation(
        "Graves, Nagisetty, Ganesh", 2021, "Amnesiac Machine Learning", "arxiv.org/abs/2010.10981"
    )
    needs: ClassVar = frozenset({"forget", "retain"})
    from_original: ClassVar = False

    epochs: int = knob(3, 1, 100, "passes over all images, whose updates are stored")
    repair: int = knob(4, 0, 100, "passes over the retain set afterwards")
    lr: float = knob(0.1, 1e-5, 1.0, "SGD step size; it falls along a cosine", log=True)
    batch: int = knob(128, 2, 1024, "examples a step: the fewer, the less is undone")
    weight_decay: float = knob(5e-4, 0.0, 0.1, "L2 penalty", log=True)

    def run(self, model, teacher, split, target, rng, on_step):
        # New weights come from torch's own generator, which is `rng` during a run.
        network = teacher.fresh().to(teacher.mean.device).requires_grad_(True).train()
        weights = list(network.parameters())
        everything = join(split.forget[:], split.retain[:])
        n, m = (math.ceil(len(part) / self.batch) for part in (everything, split.retain))
        step = counted(on_step, self.epochs * n + self.repair * m)
        batches, retain = (part.batches(self.batch, rng) for part in (everything, split.retain))
        undone = [torch.zeros_like(w) for w in weights]
        before, held = [w.detach().clone() for w in weights], False

        def learn():
            nonlocal held
            b = next(batches)
            held = bool(torch.isin(b.ids, split.forget.ids).any())
            return cross_entropy(network(b.x), b.y)

        def store(done: int) -> bool:
            for total, old, w in zip(undone, before, weights, strict=True):
                if held:
                    total += w.detach() - old
                old.copy_(w.detach())
            return False

        def restore():
            r = next(retain)
            return cross_entropy(network(r.x), r.y)

        rest = {"lr": self.lr, "weight_decay": self.weight_decay, "cosine": True, "on_step": step}
        descend(network, learn, steps=self.epochs * n, stop=store, **rest)
        with torch.no_grad():
            for w, total in zip(weights, undone, strict=True):
                w -= total
        descend(network, restore, steps=self.repair * m, **rest)
        return network
