"""Two sets: what methods share that read forget and retain batches, in turn or side by side."""

import math
from itertools import count

import torch
from torch import Tensor

from core.data.examples import Examples
from core.models.classifier import Classifier
from core.optim import OnStep, frozen_norms

__support__ = True


def rounds(examples: Examples, size: int) -> int:
    """How many batches one `epoch` of the examples has."""
    parts = math.ceil(len(examples) / size)
    last = len(examples) - (parts - 1) * size
    return parts - (parts > 1 and last == 1)  # a last batch of one joins the one before it


def counted(on_step: OnStep, total: int) -> OnStep:
    """An `OnStep` for several descents that count as one run of at most `total` steps."""
    steps = count(1)
    return lambda done, part: on_step(next(steps), total)


def still(model: Classifier, x: Tensor) -> Tensor:
    """Logits (n k) by batch norm's running statistics, which `x` does not move.

    The statistics of a batch of forgotten images alone would wreck the retained ones.
    """
    with frozen_norms(model):
        return model(x)


@torch.no_grad()
def named(model: Classifier, examples: Examples) -> float:
    """Share of the examples that the model labels rightly, by the running statistics."""
    hits = sum(int((still(model, b.x).argmax(1) == b.y).sum()) for b in examples.ordered(500))
    return hits / len(examples)


def climb(gain: Tensor, logits: Tensor, y: Tensor, floor: float) -> Tensor:
    """The loss that raises `gain`; nothing (0) where at most the share `floor` is still named.

    What is climbed here has no upper bound: once a batch is forgotten there is only harm left.
    """
    recognised = (logits.argmax(1) == y).double().mean().item()
    return -gain if recognised > floor else 0 * gain


def some(examples: Examples, share: float, rng: torch.Generator) -> Examples:
    """A random share in (0, 1] of the examples, at least one; no other is looked at."""
    order = torch.randperm(len(examples), generator=rng)
    return examples[order[: max(1, round(share * len(examples)))].to(examples.y.device)]
