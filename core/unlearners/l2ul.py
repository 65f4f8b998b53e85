"""L2UL: misclassifies the forget set, and holds the weights that it does not depend on."""

from dataclasses import dataclass
from typing import ClassVar, final

import torch
from torch import Tensor

from core.data.examples import Examples
from core.knobs import knob
from core.models.classifier import Classifier
from core.optim import OnStep, silent
from core.unlearners.base import Citation, Unlearner
from core.unlearners.pgd import attacks, misclassify, proxies
from core.unlearners.shots import sample
from core.unlearners.two_sets import counted


@final
@dataclass(frozen=True, kw_only=True)
class L2UL(Unlearner):
    """Adv's loss + strength * sum of (1 - I) * (w - w_original)^2 / 2, over all weights w.

    I is the mean over forgotten images of |d |logits| / dw|, scaled to [0, 1] within each tensor:
    what the forget set depends on may move. At strength 0 it is Adv, bit for bit. As there, single
    images are misclassified even where gold would name them rightly.
    Differs: as Adv; I is measured in eval mode (published code moves batch norm's statistics
    while measuring), on some of the images.
    """

    cite: ClassVar = Citation(
        "Cha et al.",
        2024,
        "Learning to Unlearn: Instance-wise Unlearning for Pre-trained Classifiers",
        "arxiv.org/abs/2301.11578",
    )
    needs: ClassVar = frozenset({"forget"})
    norms: ClassVar = "frozen"

    strength: float = knob(1.0, 0.0, 1e4, "weight of the penalty", log=True)
    measured: int = knob(200, 1, 10_000, "forgotten images that I is measured on", log=True)
    count: int = knob(1000, 1, 100_000, "adversarial images, over all forgotten ones", log=True)
    eps: float = knob(1.0, 1e-3, 100.0, "how far one may be from its image", unit="L2", log=True)
    attack: int = knob(20, 1, 1000, "steps of the attack")
    lr: float = knob(0.002, 1e-5, 1.0, "SGD step size", log=True)
    steps: int = knob(200, 1, 5000, "SGD steps at most")
    batch: int = knob(
        32, 1, 1024, "forgotten images a step; adversarial ones are four times as many"
    )
    clip: float = knob(1.0, 1e-3, 100.0, "largest gradient norm", log=True)
    stop: float = knob(0.0, 0.0, 1.0, "batch accuracy at which it ends", unit="fraction")

    def run(self, model, teacher, split, target, rng, on_step):
        measured = min(self.measured, len(split.forget))
        step = counted(on_step, attacks(self.count) + measured + self.steps)
        others = proxies(
            teacher,
            split.forget,
            target,
            rng,
            count=self.count,
            eps=self.eps,
            steps=self.attack,
            on_step=step,
        )
        # Drawn from a generator of its own, so that at strength 0 this is Adv.
        own = torch.Generator().manual_seed(0)
        importance = dependence(model, sample(split.forget, measured, own), step)
        start = [w.detach().clone() for w in model.parameters()]

        def penalty() -> Tensor:
            pairs = zip(model.parameters(), start, importance, strict=True)
            drift = torch.stack([((1 - i) * (w - v).square()).sum() for w, v, i in pairs])
            return self.strength * drift.sum() / 2

        misclassify(
            model,
            split.forget,
            others,
            rng,
            steps=self.steps,
            lr=self.lr,
            batch=self.batch,
            clip=self.clip,
            stop=self.stop,
            penalty=penalty,
            on_step=step,
        )


def dependence(model: Classifier, examples: Examples, on_step: OnStep = silent) -> list[Tensor]:
    """For each weight the mean over images of |d |logits| / dw|, in [0, 1] within its tensor."""
    weights = list(model.parameters())
    totals = [torch.zeros_like(w) for w in weights]
    for done, b in enumerate(examples.ordered(1), 1):
        slopes = torch.autograd.grad(model(b.x).norm(), weights)
        for total, slope in zip(totals, slopes, strict=True):
            total += slope.abs()
        on_step(done, len(examples))
    low_high = [(t.min(), (t.max() - t.min()).clamp_min(1e-30)) for t in totals]
    return [(t - low) / span for t, (low, span) in zip(totals, low_high, strict=True)]
