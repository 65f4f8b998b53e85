"""LEACE: makes the class linearly unreadable in the features, with the least change to them."""

from dataclasses import dataclass
from typing import ClassVar, final

import torch
from torch import Tensor

from core.data.examples import Examples
from core.data.targets import ForgetClasses, TargetError
from core.knobs import knob
from core.models import leace
from core.models.classifier import Classifier
from core.optim import Diverged
from core.unlearners.base import Citation, Unlearner


@final
@dataclass(frozen=True, kw_only=True)
class LEACE(Unlearner):
    """r(z) = z - W^+ Q Q^T W (z - mean), W = Cov(z)^(-1/2), Q the span of W Cov(z, class).

    z are the penultimate features of all training images; the classes to forget are one concept
    each. What follows the features is told nothing of the class by any linear map on the images
    it was fitted on; other probes may still read it, and no weight of the body moves. Forgotten
    images land about the mean of all, and the head gives them another name there.
    Differs: directions are dropped below 1e-9 of the largest, in float64 (the published default,
    an absolute 0.01, leaves a trace of the concept).
    """

    cite: ClassVar = Citation(
        "Belrose et al.",
        2023,
        "LEACE: Perfect Linear Concept Erasure in Closed Form",
        "arxiv.org/abs/2306.03819",
    )
    needs: ClassVar = frozenset({"forget", "retain"})
    levels: ClassVar = frozenset({"class"})
    norms: ClassVar = "frozen"

    variant: str = knob(
        "leace", help="oblique, with the least change, or orthogonal", choices=("leace", "orth")
    )
    batch: int = knob(500, 1, 4096, "images a pass", unit="images")

    def run(self, model, teacher, split, target, rng, on_step):
        assert isinstance(target, ForgetClasses)  # `levels` has seen to it
        if teacher.transform is not None:
            raise TargetError("The model already has a transform between its body and its head.")
        sets = split.forget, split.retain
        z = torch.cat([features(teacher, part, self.batch) for part in sets])
        y = torch.cat([part.y for part in sets])
        concept = y[:, None] == torch.tensor(target.labels, device=y.device)
        made = leace.fit(z, concept, whiten=self.variant == "leace")
        model.transform = made.to(torch.promote_types(z.dtype, torch.float32)).to(z.device)
        on_step(1, 1)


@torch.no_grad()
def features(model: Classifier, examples: Examples, batch: int) -> Tensor:
    """What the head sees (n d).

    Raises:
        Diverged: a feature is not finite.
    """
    z = torch.cat([model.features(b.x) for b in examples.ordered(batch)])
    if not torch.isfinite(z).all():
        raise Diverged("a feature is not finite")
    return z
