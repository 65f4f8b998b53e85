"""Noise: images learnt against a frozen model, which stand in for data; UNSIR's and EMMN's."""

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from core.models.classifier import Classifier
from core.optim import OnStep, silent
from core.unlearners.adam import adapt

__support__ = True


def learn(
    teacher: Classifier,
    labels: Tensor,
    sign: float,
    rng: torch.Generator,
    *,
    steps: int,
    lr: float = 0.1,
    weight: float = 0.1,
    on_step: OnStep = silent,
) -> Tensor:
    """Images (n c h w), one for each of the `labels` (n), learnt by Adam from standard noise.

    They minimise sign * cross-entropy + weight * (mean squared size of a normalised pixel): at
    sign -1 they are what `teacher` takes least for its label, at +1 what it takes most for it.
    Pixels may leave [0, 1].

    Raises:
        Diverged: the loss is NaN or infinite.
    """
    shape = teacher.recipe[1]
    start = torch.randn(len(labels), *shape, generator=rng).to(teacher.mean.device)
    noise = nn.Parameter(start)

    def loss() -> Tensor:
        error = cross_entropy(teacher(teacher.mean + teacher.std * noise), labels)
        return sign * error + weight * noise.square().mean()

    # What is maximised has a negative loss, and none is small enough to stop at.
    adapt(nn.ParameterList([noise]), loss, steps=steps, lr=lr, enough=-math.inf, on_step=on_step)
    return (teacher.mean + teacher.std * noise).detach()
