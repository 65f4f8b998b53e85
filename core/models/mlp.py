"""MLP: two hidden layers on the flattened image; it knows nothing of neighbouring pixels."""

import math
from dataclasses import dataclass
from typing import ClassVar, final

from torch import Tensor, nn

from core.knobs import knob
from core.models.base import Architecture
from core.models.classifier import Classifier
from core.models.training import Training


@final
@dataclass(frozen=True, kw_only=True)
class MLP(Architecture):
    """Linear, ReLU, linear, ReLU: for images of up to some 32 pixels."""

    training: ClassVar = Training(epochs=20, lr=0.05)

    hidden: int = knob(256, 1, 8192, "width of the first layer", unit="units", log=True)
    penultimate: int = knob(64, 1, 4096, "width of what the head sees", unit="units", log=True)

    def make(
        self, shape: tuple[int, int, int], classes: int, mean: Tensor, std: Tensor
    ) -> Classifier:
        pixels = math.prod(shape)
        stages = {
            "hidden1": nn.Sequential(nn.Flatten(), nn.Linear(pixels, self.hidden), nn.ReLU()),
            "hidden2": nn.Sequential(nn.Linear(self.hidden, self.penultimate), nn.ReLU()),
        }
        return Classifier(stages, self.penultimate, classes, mean, std)
