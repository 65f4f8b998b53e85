"""Structguard: misclassifies images, while all features keep lying as they did to fixed anchors."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, final

import torch
from torch import Tensor

from core.data.examples import Examples
from core.knobs import knob
from core.models.classifier import Classifier
from core.optim import descend
from core.unlearners.anchors import anchors
from core.unlearners.base import Citation, Unlearner
from core.unlearners.compression import inserted
from core.unlearners.pgd import attacks, proxies
from core.unlearners.structure import Guard, Terms, near_identity


@final
@dataclass(frozen=True, kw_only=True)
class Structguard(Unlearner):
    """Minimise share_f * log odds(forgotten images) + share_a * CE(adversarial images)
    + misalignment + strength * drift + 0.001 * elastic net(head).

    Adversarial images, forgotten ones moved into other classes, stand for what is retained: a
    projector between body and head has to name them, and to keep the cosines of their features
    with one anchor for each class. Drift is that of the weights which these cosines depend on.
    The aim is that each image is misclassified, which for single images is more than gold does,
    and costs many of the images that resemble them.
    Differs: log odds instead of -CE, which hardly moves what the model is sure of; of images not
    yet misclassified only, as neither has a lower bound; and before or behind the projector,
    wherever they are larger (published: before it, which the projector can learn to undo). Anchors
    are TF-IDF of our own phrases, not CLIP's. The projector starts near the identity and has no
    batch norm, which with kept statistics would be part of its first layer. Importance is measured
    before the first step; at the published strength of 1 the drift weighs next to nothing here.
    One step size for all; a bounded number of adversarial images; clipped gradients; labels drawn
    from all other classes (published code maps collisions to k // 2).
    """

    cite: ClassVar = Citation(
        "Hong, Shin, Kim",
        2026,
        "Stake the Points: Structure-Faithful Instance Unlearning",
        "arxiv.org/abs/2603.12915",
    )
    needs: ClassVar = frozenset({"forget"})
    norms: ClassVar = "frozen"

    anchors: str = knob(
        "semantic",
        help="directions by what the classes look like, where they are described, or random ones",
        choices=("semantic", "random"),
    )
    align: bool = knob(True, help="keep the cosines with the anchors")
    regularise: bool = knob(True, help="hold the weights that these cosines depend on")
    elastic: bool = knob(True, help="the elastic net on the head's weights")
    each: int = knob(5, 1, 1000, "adversarial images of each forgotten one")
    most: int = knob(640, 1, 100_000, "adversarial images in all, at most", log=True)
    eps: float = knob(0.7, 1e-3, 100.0, "how far one may be from its image", unit="L2", log=True)
    steps: int = knob(20, 1, 1000, "steps of the attack")
    chance: float = knob(0.1, 0.01, 1.0, "how much of the projector's first weights is random")
    strength: float = knob(100.0, 0.0, 1e6, "weight of the drift")
    lr: float = knob(0.1, 1e-5, 1.0, "SGD step size", log=True)
    epochs: int = knob(200, 1, 1000, "passes over the adversarial images at most")
    batch: int = knob(64, 1, 1024, "forgotten images a step; adversarial ones are twice as many")
    clip: float = knob(0.15, 1e-3, 100.0, "largest gradient norm", log=True)
    stop: float = knob(0.0, 0.0, 1.0, "forget accuracy at which it ends", unit="fraction")

    def run(self, model, teacher, split, target, rng, on_step):
        head = model.head.weight
        fixed, said = anchors(self.anchors, model.names, *head.shape)
        count = min(self.each * len(split.forget), self.most)
        steps = self.epochs * math.ceil(count / (2 * self.batch))
        others = proxies(
            teacher,
            split.forget,
            target,
            rng,
            count=count,
            eps=self.eps,
            steps=self.steps,
            on_step=lambda done, made: on_step(done, made + steps),
        )
        near_identity(inserted(model, 1, head.shape[1]), self.chance)
        guard = Guard(model, teacher, others, fixed.to(head), 2 * self.batch)
        batches, rows = split.forget.batches(self.batch, rng), _rows(count, 2 * self.batch, rng)
        named = 1.0

        def loss() -> Tensor:
            nonlocal named
            terms = guard.terms(next(batches), next(rows).to(head.device))
            named = terms.named
            return self.total(terms)

        def enough(step: int) -> bool:
            # Before the step and after it: what one step has just pushed over slides back.
            return named <= self.stop and accuracy(model, split.forget) <= self.stop

        made = attacks(count)
        descend(
            model,
            loss,
            steps=steps,
            lr=self.lr,
            momentum=0.0,
            clip=self.clip,
            stop=enough,
            on_step=lambda done, of: on_step(made + done, made + of),
        )
        return f"{said} {accuracy(model, split.forget):.1%} of the forget set is still named."

    def total(self, terms: Terms) -> Tensor:
        """The loss, of the terms that are switched on."""
        kept = self.align * terms.align + self.regularise * self.strength * terms.drift
        return terms.delete + terms.retain + kept + self.elastic * 0.001 * terms.elastic


@torch.no_grad()
def accuracy(model: Classifier, examples: Examples) -> float:
    """Share of the examples that the model names rightly; batch norm's statistics are kept."""
    hits = sum(int((model(b.x).argmax(1) == b.y).sum()) for b in examples.ordered(500))
    return hits / len(examples)


def _rows(n: int, size: int, rng: torch.Generator) -> Iterator[Tensor]:
    """Shuffled batches of row numbers below `n`, without end."""
    while True:
        yield from torch.randperm(n, generator=rng).split(size)
