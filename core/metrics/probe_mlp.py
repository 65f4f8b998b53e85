"""MLP probe: balanced accuracy of a small network that looks for the class in the features."""

import math
from dataclasses import dataclass
from typing import ClassVar, final

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from core.metrics.base import Metric
from core.metrics.probing import Trials, balanced

HIDDEN = 128
BATCH = 400
RATE = 1e-2
DECAY = 1e-4
"""L2 penalty on the weights, in nats a batch."""
HELD_OUT = 0.1
EPOCHS = 40
PATIENCE = 4
"""Epochs without a better held-out loss after which a network has stopped."""
BETTER = 1e-3
"""Nats by which a held-out loss must fall to be better."""


class Nets:
    """One network a split (s): d inputs, HIDDEN rectified units, one score.

    All weights are views of one flat tensor, so that one optimiser step moves every network.
    """

    def __init__(self, splits: int, width: int, rng: torch.Generator) -> None:
        bounds = (math.sqrt(6 / (width + HIDDEN)), math.sqrt(6 / (HIDDEN + 1)))
        self.shapes = ((width, HIDDEN), (1, HIDDEN), (1, HIDDEN), (1,))
        self.flat = torch.cat(
            [
                (2 * torch.rand(splits, math.prod(shape), generator=rng) - 1) * bounds[i // 2]
                for i, shape in enumerate(self.shapes)
            ],
            1,
        )
        self.slopes, self.first, self.second = torch.zeros(3, *self.flat.shape)
        self.steps = 0

    def views(self, flat: Tensor) -> list[Tensor]:
        """Weights and biases of the two layers inside `flat`."""
        parts = flat.split([math.prod(shape) for shape in self.shapes], 1)
        return [p.unflatten(1, shape) for p, shape in zip(parts, self.shapes, strict=True)]

    def score(self, x: Tensor, flat: Tensor) -> tuple[Tensor, Tensor]:
        """Hidden units (s n HIDDEN) and scores (s n) of `x` (s n d) under the weights `flat`."""
        w1, b1, w2, b2 = self.views(flat)
        h = torch.baddbmm(b1, x, w1).relu_()
        return h, (h * w2).sum(2) + b2

    def differentiate(self, x: Tensor, y: Tensor) -> None:
        """Set the gradient of a batch's mean cross-entropy, plus the penalty.

        By hand, so that it works in inference mode too, where autograd refuses.
        """
        h, scores = self.score(x, self.flat)
        error = ((scores.sigmoid() - y) / len(y))[:, :, None]
        back = (error * self.views(self.flat)[2]).mul_(h.sign())
        grads = (x.mT @ back, back.sum(1), (h * error).sum(1), error.sum(1))
        for view, grad in zip(self.views(self.slopes), grads, strict=True):
            view.copy_(grad.view_as(view))
        self.slopes.add_(self.flat, alpha=DECAY / len(y))

    def step(self, x: Tensor, y: Tensor) -> None:
        """One step of Adam (Kingma and Ba 2015, arxiv.org/abs/1412.6980) on a batch."""
        self.differentiate(x, y)
        self.steps += 1
        self.first.lerp_(self.slopes, 0.1)
        self.second.lerp_(self.slopes.square(), 0.001)
        scale = (self.second / (1 - 0.999**self.steps)).sqrt_().add_(1e-8)
        self.flat.addcdiv_(self.first, scale, value=-RATE / (1 - 0.9**self.steps))

    def loss(self, x: Tensor, y: Tensor) -> Tensor:
        """Mean cross-entropy of each network in nats (s)."""
        scores = self.score(x, self.flat)[1]
        each = binary_cross_entropy_with_logits(scores, y.expand_as(scores), reduction="none")
        return each.mean(1)


def mlp(trials: Trials) -> Tensor:
    """The networks' scores on the test parts, each with the weights of its best epoch."""
    rng = torch.Generator().manual_seed(trials.seed)
    x, y, held_x, held_y = hold_out(trials)
    nets = Nets(len(x), x.shape[2], rng)
    best, weights = torch.full((len(x),), torch.inf), nets.flat.clone()
    age = torch.zeros(len(x), dtype=torch.long)
    for _ in range(EPOCHS):
        order = torch.randperm(len(y), generator=rng)
        for rows in order.split(BATCH):
            nets.step(x[:, rows], y[rows])
        loss = nets.loss(held_x, held_y)
        better = (loss < best - BETTER) & (age < PATIENCE)
        best, weights = loss.where(better, best), nets.flat.where(better[:, None], weights)
        age = (age + 1).masked_fill(better, 0)
        if bool((age >= PATIENCE).all()):
            break
    return nets.score(trials.test.float(), weights)[1]


def hold_out(trials: Trials) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Features (s n d) and labels (n) to fit on, then those held out; HELD_OUT of either side."""
    forget, rest = trials.sides
    a, b = math.ceil(HELD_OUT * forget), math.ceil(HELD_OUT * rest)
    held = torch.zeros(forget + rest, dtype=torch.bool)
    held[:a] = held[forget : forget + b] = True
    x, y = trials.train.float(), trials.y.float()
    return x[:, ~held], y[~held], x[:, held], y[held]


@final
@dataclass(frozen=True)
class ProbeMLP(Metric):
    """Forget class against the rest on the test set, by one hidden layer of 128 units with early
    stopping; splits and score as for the linear probe ("Mirage", 2026, arxiv.org/abs/2605.20282).

    Differs: the held-out loss decides when to stop, not the held-out accuracy, which with few
    samples of the class stops too early (it read 5 points less at an early stage). Ten times the
    step size and twice the batch, for speed (0.7 points less on average than without haste).
    """

    unit: ClassVar = "fraction"
    low: ClassVar = 0.0
    high: ClassVar = 1.0
    ideal: ClassVar = "gold"
    per_tap: ClassVar = True
    levels: ClassVar = frozenset({"class", "subclass"})

    def measure(self, model, reference, tap, seed):
        return balanced(model, tap, seed, mlp)
