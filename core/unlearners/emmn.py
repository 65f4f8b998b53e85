"""EMMN: unlearns without data, by noise least like the class and noise most like the others."""

from dataclasses import dataclass
from typing import ClassVar, final

import torch
from torch.nn.functional import cross_entropy

from core.data.targets import ForgetClasses
from core.knobs import knob
from core.optim import descend
from core.unlearners.base import Citation, Unlearner
from core.unlearners.noise import learn
from core.unlearners.two_sets import counted


@final
@dataclass(frozen=True, kw_only=True)
class EMMN(Unlearner):
    """Train on (noise, forgotten class) among (noise, retained class), then on the latter alone.

    The noise for a forgotten class minimises -CE + weight * N^2 against the original, that for a
    retained class CE + weight * N^2: it stands in for its images. No image is read. Noise is far
    from images, and the forgotten class may become the name for whatever is strange: how much is
    forgotten depends on the data, and it costs more retained accuracy than methods with data.
    Differs: N^2 is a mean over pixels; SGD with a clipped gradient trains the model. No official
    code is known.
    """

    cite: ClassVar = Citation(
        "Chundawat et al.", 2023, "Zero-Shot Machine Unlearning", "arxiv.org/abs/2201.05629"
    )
    caveat: ClassVar = (
        "At its defaults it forgets a class and loses about seven points of the others."
    )
    needs: ClassVar = frozenset()
    levels: ClassVar = frozenset({"class"})
    norms: ClassVar = "frozen"

    noises: int = knob(32, 1, 1024, "noise images of each class")
    noise_steps: int = knob(40, 1, 1000, "Adam steps by which the noise is learnt")
    weight: float = knob(0.1, 0.0, 100.0, "penalty on the noise's mean square")
    steps: int = knob(60, 1, 5000, "SGD steps of each of the two phases")
    impair: float = knob(0.005, 1e-5, 1.0, "SGD step size while impairing", log=True)
    repair: float = knob(0.005, 1e-5, 1.0, "SGD step size while repairing", log=True)
    batch: int = knob(64, 1, 1024, "noise images a step", unit="images")
    clip: float = knob(1.0, 1e-3, 100.0, "largest gradient norm", log=True)

    def run(self, model, teacher, split, target, rng, on_step):
        assert isinstance(target, ForgetClasses)  # `levels` has seen to it
        count = counted(on_step, 2 * self.noise_steps + 2 * self.steps)
        device = model.mean.device
        labels = torch.arange(model.head.out_features, device=device).repeat(self.noises)
        gone = torch.isin(labels, torch.tensor(target.labels, device=device))
        x, y = torch.zeros(len(labels), *model.recipe[1], device=device), labels
        for sign, chosen in ((-1, gone), (1, ~gone)):
            x[chosen] = learn(
                teacher,
                y[chosen],
                sign,
                rng,
                steps=self.noise_steps,
                weight=self.weight,
                on_step=count,
            )

        def phase(allowed, lr):
            def loss():
                order = torch.randperm(len(allowed), generator=rng)[: self.batch]
                rows = allowed[order.to(device)]
                return cross_entropy(model(x[rows]), y[rows])

            descend(model, loss, steps=self.steps, lr=lr, clip=self.clip, on_step=count)

        phase(torch.arange(len(y), device=device), self.impair)
        phase((~gone).nonzero().flatten(), self.repair)
