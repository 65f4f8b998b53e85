"""SCRUB: a student that obeys the original on the retain set and disobeys it on the forget set."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import ClassVar, final

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from core.data.examples import Batch, Examples
from core.knobs import knob
from core.optim import descend
from core.unlearners.base import Citation, Unlearner
from core.unlearners.rewind import Rewind, apart
from core.unlearners.two_sets import climb, rounds


def softened(teacher: Tensor, student: Tensor, t: float) -> Tensor:
    """t^2 KL(softmax(teacher / t) || softmax(student / t)) of each row of the logits (n k)."""
    p, q = (teacher / t).log_softmax(1), (student / t).log_softmax(1)
    return t**2 * (p.exp() * (p - q)).sum(1)


def disobedience(teacher: Tensor, student: Tensor, y: Tensor, t: float) -> Tensor:
    """What the climb raises: `softened`, or cross-entropy where the student is as sure of `y`.

    There the distance has no slope (it starts at its minimum), or grows with still more certainty.
    """
    sure, before = (z.log_softmax(1).gather(1, y[:, None])[:, 0] for z in (student, teacher))
    return torch.where(sure < before, softened(teacher, student, t), -sure).mean()


@final
@dataclass(frozen=True, kw_only=True)
class Scrub(Unlearner):
    """Maximise KL_t(original || model) on the forget set; minimise it, with CE, on the retain set.

    Each epoch passes over the forget set, if it is one of the first `msteps`, and then over the
    retain set. With `rewind` (SCRUB+R, against membership attacks) the result is the epoch whose
    error on the forget set is nearest to the final error on images held out; to remove a class,
    take the final model.
    Differs: the climb is of cross-entropy where the model is as sure as the original, for there
    the distance may grow the wrong way without end; it pauses at a batch of which little enough is
    still recognised; the gradient is clipped; batch norm's statistics are kept; the step size is
    constant. No image is in reach that the original has not seen: held out is a tenth of the
    forget set for classes, and of the retain set, with too low an error, for single images.
    """

    cite: ClassVar = Citation(
        "Kurmanji et al.", 2023, "Towards Unbounded Machine Unlearning", "arxiv.org/abs/2302.09880"
    )
    caveat: ClassVar = "At its defaults up to a tenth of a class may still be named, by the seed."
    needs: ClassVar = frozenset({"forget", "retain"})
    norms: ClassVar = "frozen"

    alpha: float = knob(0.5, 0.0, 10.0, "weight of the distance to the original, on the retain set")
    gamma: float = knob(1.0, 0.0, 10.0, "weight of cross-entropy, on the retain set")
    t: float = knob(2.0, 0.1, 20.0, "temperature of the distance", log=True)
    msteps: int = knob(2, 0, 20, "epochs that climb; more epochs than these repair at the end")
    epochs: int = knob(2, 1, 100, "epochs in all, each with a pass over the retain set")
    lr: float = knob(0.01, 1e-5, 1.0, "SGD step size", log=True)
    batch: int = knob(128, 1, 1024, "retain examples a step")
    batch_forget: int = knob(32, 1, 1024, "forget examples a step: fewer give more steps")
    clip: float = knob(2.0, 1e-3, 1000.0, "largest gradient norm", log=True)
    stop: float = knob(
        0.03, 0.0, 1.0, "batch accuracy at which the climb pauses, for classes", unit="fraction"
    )
    stop_images: float = knob(
        0.9, 0.0, 1.0, "the same for single images: about what unseen ones reach", unit="fraction"
    )
    rewind: bool = knob(False, help="give back the epoch with an error as on images held out")

    def run(self, model, teacher, split, target, rng, on_step):
        single = target.level == "instance"
        forget, retain, held = split.forget, split.retain, split.forget[:0]
        if self.rewind and single:
            retain, held = apart(retain, rng)
        elif self.rewind:
            forget, held = apart(forget, rng)
        floor = self.stop_images if single else self.stop
        turns, ends = self.turns(forget, retain, rng), self.ends(forget, retain)
        past = Rewind(model, forget, held)

        def loss():
            climbing, b = next(turns)
            with torch.no_grad():
                said = teacher(b.x)
            logits = model(b.x)
            if climbing:
                return climb(disobedience(said, logits, b.y, self.t), logits, b.y, floor)
            away = softened(said, logits, self.t).mean()
            return self.alpha * away + self.gamma * cross_entropy(logits, b.y)

        def keep(step: int) -> bool:
            if len(held) and step in ends:
                past.keep()
            return False

        descend(model, loss, steps=ends[-1], lr=self.lr, clip=self.clip, stop=keep, on_step=on_step)
        return past.back() if len(held) else None

    def turns(
        self, forget: Examples, retain: Examples, rng: torch.Generator
    ) -> Iterator[tuple[bool, Batch]]:
        """The batches in their order, each with whether it is one to climb on."""
        for epoch in range(self.epochs):
            if epoch < self.msteps:
                yield from ((True, b) for b in forget.epoch(self.batch_forget, rng))
            yield from ((False, b) for b in retain.epoch(self.batch, rng))

    def ends(self, forget: Examples, retain: Examples) -> list[int]:
        """The number of steps after each epoch."""
        up, down = rounds(forget, self.batch_forget), rounds(retain, self.batch)
        return list(accumulate(down + up * (e < self.msteps) for e in range(self.epochs)))
