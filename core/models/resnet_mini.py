"""ResNet mini: three residual stages of 16, 32 and 64 channels, 78 thousand weights."""

from dataclasses import dataclass
from typing import ClassVar, final

from torch import Tensor, nn
from torch.nn.functional import relu

from core.models.base import Architecture
from core.models.classifier import Classifier
from core.models.training import Training


class Block(nn.Module):
    """Two 3x3 convolutions and a shortcut (He et al. 2016, arxiv.org/abs/1512.03385)."""

    def __init__(self, c: int, d: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(c, d, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(d)
        self.conv2 = nn.Conv2d(d, d, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(d)
        self.short = nn.Sequential()
        if stride > 1 or c != d:
            self.short = nn.Sequential(nn.Conv2d(c, d, 1, stride, bias=False), nn.BatchNorm2d(d))

    def forward(self, x: Tensor) -> Tensor:
        h = self.bn2(self.conv2(relu(self.bn1(self.conv1(x)))))
        return relu(h + self.short(x))


def stem(c: int, d: int, stride: int) -> nn.Module:
    """One 3x3 convolution."""
    return nn.Sequential(nn.Conv2d(c, d, 3, stride, 1, bias=False), nn.BatchNorm2d(d), nn.ReLU())


@final
@dataclass(frozen=True, kw_only=True)
class ResNetMini(Architecture):
    """ResNet-8 for images of 8 to 32 pixels."""

    training: ClassVar = Training()

    def make(
        self, shape: tuple[int, int, int], classes: int, mean: Tensor, std: Tensor
    ) -> Classifier:
        stages = {
            "stem": stem(shape[0], 16, 2 if min(shape[1:]) >= 16 else 1),
            "stage1": Block(16, 16, 1),
            "stage2": Block(16, 32, 2),
            "stage3": Block(32, 64, 2),
        }
        return Classifier(stages, 64, classes, mean, std)
