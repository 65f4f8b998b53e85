"""Relearning: how many steps of fine-tuning bring a forgotten class back."""

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch.nn.functional import cross_entropy

from core.data.examples import Examples, join
from core.models.classifier import Classifier
from core.optim import Diverged, OnStep, frozen_norms, silent

__support__ = True

MOST = 200
"""Steps after which it is given up: three golds of `fashion` need 136 to 163, methods fewer."""
SLACK = 0.05
"""Share of the original's accuracy that need not come back."""
BATCH = 32
"""Adam's steps are of one size whatever the batch; a larger one costs more and needs as many."""
LOOKED = 150
"""Most test images that a look costs."""
LR = 1e-3
SEED = 0


@dataclass(frozen=True, eq=False)
class Relearned:
    """The accuracy on unseen images of the forgotten classes while a copy was fine-tuned."""

    steps: tuple[int, ...]
    """Steps before each look, from 0; the last look is the first at `bar` or above, or MOST."""
    accuracy: tuple[float, ...]
    bar: float
    """(1 - SLACK) of the original's accuracy on the same images."""
    n: int
    """Images looked at."""

    @property
    def back(self) -> bool:
        """Whether it came back at all."""
        return self.accuracy[-1] >= self.bar


def looks(most: int = MOST) -> list[int]:
    """Numbers of steps after which to look: every one at first, then a tenth apart."""
    found = [0]
    while found[-1] < most:
        found.append(min(most, found[-1] + max(1, found[-1] // 10)))
    return found


def lesson(parts: Mapping[str, Examples]) -> Examples:
    """The forget set and as many images of the retain set, drawn by a fixed seed."""
    forget, retain = parts["forget"], parts["retain"]
    return join(forget, drawn(retain, len(forget)))


def drawn(examples: Examples, most: int) -> Examples:
    """At most `most` of them, by a fixed seed."""
    order = torch.randperm(len(examples), generator=torch.Generator().manual_seed(SEED))
    return examples[order[:most].to(examples.y.device)]


def relearn(
    model: Classifier,
    parts: Mapping[str, Examples],
    bar: float | None = None,
    on_step: OnStep = silent,
) -> Relearned:
    """Fine-tune a copy of `model` by Adam (1e-3) until its accuracy is at `bar`, or MOST steps.

    Without a bar the model is the original, whose own accuracy sets it. Set, order and test
    images are the same for every model. A mask over classes is lifted first, for whoever
    fine-tunes a model holds it; batch norms keep their statistics, so that the first step is
    not a change of statistics.

    Raises:
        Diverged: the loss is NaN or infinite.
        DataError: there is nothing to learn from.
    """
    pupil = copy.deepcopy(model).train().requires_grad_(True)
    pupil.masked.zero_()
    exam = drawn(parts["test_forget"], LOOKED)
    step = _lessons(pupil, lesson(parts))
    done, steps, accuracy = 0, [], []
    for look in looks():
        while done < look:
            step()
            done += 1
            on_step(done, MOST)
        steps.append(look)
        accuracy.append(_accuracy(pupil, exam))
        bar = (1 - SLACK) * accuracy[0] if bar is None else bar
        if accuracy[-1] >= bar:
            break
    return Relearned(tuple(steps), tuple(accuracy), bar or 0.0, len(exam))


def _lessons(pupil: Classifier, examples: Examples) -> Callable[[], None]:
    """One step of Adam on the next batch, at each call."""
    batches = examples.batches(BATCH, torch.Generator().manual_seed(SEED))
    optimizer = torch.optim.Adam(pupil.parameters(), lr=LR)

    def step() -> None:
        batch = next(batches)
        with frozen_norms(pupil), torch.enable_grad():
            loss = cross_entropy(pupil(batch.x), batch.y)
        if not torch.isfinite(loss):
            raise Diverged(f"the loss became {loss.item()} while relearning")
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()

    return step


@torch.no_grad()
def _accuracy(pupil: Classifier, exam: Examples) -> float:
    with frozen_norms(pupil):
        said = pupil(exam.float().x).argmax(1)
    return float((said == exam.y).float().mean())
