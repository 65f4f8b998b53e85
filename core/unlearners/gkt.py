"""GKT: teaches a new network, without data, all that the original knows but the class."""

from dataclasses import dataclass
from typing import ClassVar, final

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from core.data.targets import ForgetClasses
from core.knobs import knob
from core.losses import kl
from core.models.classifier import Classifier, pool
from core.optim import Diverged
from core.unlearners.base import Citation, Unlearner

STUDENT_STEPS, PATIENCE = 10, 10
"""Student steps a generator step; cycles in a row without an image before it starts anew."""


@final
@dataclass(frozen=True, kw_only=True)
class GKT(Unlearner):
    """A generator maximises KL(original || student), the student minimises it, behind a gate.

    The gate drops every generated image to which the original gives the forgotten classes more
    than `gate`. The student also matches attention maps, the squared activations of each stage.
    It starts from nothing and sees no real image, so its accuracy on the retained classes is what
    the time allows: the paper takes thousands of cycles, more than a retraining, and here the
    default of some minutes' work at most stays well below the original.
    Differs: far fewer cycles; KL is a mean over images, not over classes as well; a generator
    that gets no image past the gate starts anew, where published code goes back to an earlier one.
    """

    cite: ClassVar = Citation(
        "Chundawat et al.", 2023, "Zero-Shot Machine Unlearning", "arxiv.org/abs/2201.05629"
    )
    caveat: ClassVar = (
        "In the minute of its defaults it loses most of what should be kept: it sees no real image."
    )
    needs: ClassVar = frozenset()
    levels: ClassVar = frozenset({"class"})
    from_original: ClassVar = False

    steps: int = knob(40, 1, 5000, "cycles of one generator step and ten student steps")
    gate: float = knob(
        0.01, 0.0, 1.0, "largest probability of the forgotten classes", unit="probability"
    )
    attention: float = knob(250.0, 0.0, 1e5, "weight of the attention maps' distance", log=True)
    lr: float = knob(0.002, 1e-5, 1.0, "Adam step size of generator and student", log=True)
    batch: int = knob(64, 2, 1024, "images generated a cycle", unit="images")
    clip: float = knob(5.0, 1e-3, 100.0, "largest gradient norm", log=True)

    def run(self, model, teacher, split, target, rng, on_step):
        assert isinstance(target, ForgetClasses)  # `levels` has seen to it
        # New weights come from torch's own generator, which is `rng` during a run.
        student = teacher.fresh().to(teacher.mean.device).requires_grad_(True).train()
        learner = torch.optim.Adam(student.parameters(), lr=self.lr)
        generator, maker, starved, drawn, passed = None, learner, PATIENCE, 0, 0
        for cycle in range(self.steps):
            if generator is None or starved >= PATIENCE:
                generator = Generator(teacher).to(teacher.mean.device)
                maker, starved = torch.optim.Adam(generator.parameters(), lr=self.lr), 0
            z = torch.randn(self.batch, Generator.width, generator=rng).to(teacher.mean)
            x = self.kept(teacher, generator(z), target.labels)
            drawn, passed = drawn + len(z), passed + len(x)
            starved = 0 if len(x) > 1 else starved + 1  # batch norm needs two
            if len(x) > 1:
                self.step(maker, generator, -kl(teacher(x).softmax(1), student(x)))
                x = self.kept(teacher, generator(z).detach(), target.labels)
            if len(x) > 1:
                self.learn(student, teacher, x, learner)
            on_step(cycle + 1, self.steps)
        return student if passed else "No generated image passed the gate; nothing was changed."

    def kept(self, teacher: Classifier, x: Tensor, labels: tuple[int, ...]) -> Tensor:
        """The images (m c h w) among `x` (n c h w) that pass the gate."""
        with torch.no_grad():
            doubt = teacher(x).softmax(1)[:, list(labels)].sum(1)
        return x[doubt <= self.gate]

    def learn(
        self, student: Classifier, teacher: Classifier, x: Tensor, optimizer: torch.optim.Optimizer
    ) -> None:
        with torch.no_grad():
            goal, maps = look(teacher, x)
        for _ in range(STUDENT_STEPS):
            said, mine = look(student, x)
            apart = sum((a - b).square().mean() for a, b in zip(mine, maps, strict=True))
            self.step(optimizer, student, kl(goal.softmax(1), said) + self.attention * apart)

    def step(self, optimizer: torch.optim.Optimizer, module: nn.Module, loss: Tensor) -> None:
        if not torch.isfinite(loss):
            raise Diverged(f"the loss became {loss.item()}")
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(module.parameters(), self.clip)
        optimizer.step()


def look(model: Classifier, x: Tensor) -> tuple[Tensor, list[Tensor]]:
    """Logits (n k), and for each stage with space the squared activations (n hw, of length 1)."""
    seen = [h for _, h in model.stages(x)]
    maps = [normalize(h.square().mean(1).flatten(1)) for h in seen if h.ndim == 4]
    return model.logits(pool(seen[-1])), maps


class Generator(nn.Module):
    """Noise (n `width`) to images for `model`, with the mean and deviation of its data."""

    width: ClassVar = 128

    def __init__(self, model: Classifier) -> None:
        super().__init__()
        c, h, w = model.recipe[1]
        small, middle = (-(-h // 4), -(-w // 4)), (-(-h // 2), -(-w // 2))
        self.stages = nn.Sequential(
            nn.Linear(self.width, 64 * small[0] * small[1]),
            nn.Unflatten(1, (64, *small)),
            nn.BatchNorm2d(64),
            nn.Upsample(middle),
            nn.Conv2d(64, 64, 3, 1, 1),
            nn.BatchNorm2d(64),
            nn.LeakyReLU(0.2),
            nn.Upsample((h, w)),
            nn.Conv2d(64, 32, 3, 1, 1),
            nn.BatchNorm2d(32),
            nn.LeakyReLU(0.2),
            nn.Conv2d(32, c, 3, 1, 1),
            nn.BatchNorm2d(c, affine=False),
        )
        self.mean, self.std = model.mean.clone(), model.std.clone()

    def forward(self, z: Tensor) -> Tensor:
        return self.mean + self.std * self.stages(z)
