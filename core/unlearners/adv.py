"""Adv: misclassifies the forget set, while adversarial images of it hold the other classes."""

from dataclasses import dataclass
from typing import ClassVar, final

from core.knobs import knob
from core.unlearners.base import Citation, Unlearner
from core.unlearners.pgd import attacks, misclassify, proxies
from core.unlearners.two_sets import counted


@final
@dataclass(frozen=True, kw_only=True)
class Adv(Unlearner):
    """Minimise share_a * CE(adversarial, class it passes for) - share_f * CE(forget set).

    The adversarial images are forgotten images moved, once and against the original, into random
    other classes; the shares are those of the batch. The aim is that each image is misclassified,
    which for single images is more than gold does: it may well name unseen images rightly.
    They hold the other classes only while they resemble images: the farther they may go beyond what
    it takes to succeed, the easier the network tells them from images and treats both apart.
    Differs: the number of adversarial images is fixed in all, not for each image; gradients are
    clipped; the accuracy that ends it is a batch's.
    """

    cite: ClassVar = Citation(
        "Cha et al.",
        2024,
        "Learning to Unlearn: Instance-wise Unlearning for Pre-trained Classifiers",
        "arxiv.org/abs/2301.11578",
    )
    needs: ClassVar = frozenset({"forget"})
    norms: ClassVar = "frozen"

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
        step = counted(on_step, attacks(self.count) + self.steps)
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
            on_step=step,
        )
