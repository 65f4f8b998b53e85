"""ResNet-18: four stages of 64 to 512 channels for small photographs, 11 million weights."""

from dataclasses import dataclass
from typing import ClassVar, final

from torch import Tensor, nn

from core.models.base import Architecture
from core.models.classifier import Classifier
from core.models.resnet_mini import Block, stem
from core.models.training import Training


@final
@dataclass(frozen=True, kw_only=True)
class ResNet18(Architecture):
    """He et al. 2016 (arxiv.org/abs/1512.03385), for images of 28 to 64 pixels.

    Differs: the first convolution is 3x3 with stride 1 and no pooling follows it, as is usual
    for images as small as CIFAR's.
    """

    training: ClassVar = Training(epochs=30, lr=0.1, weight_decay=5e-4, pad=4, plain_from=0.9)

    def make(
        self, shape: tuple[int, int, int], classes: int, mean: Tensor, std: Tensor
    ) -> Classifier:
        stages = {
            "stem": stem(shape[0], 64, 1),
            "stage1": _stage(64, 64, 1),
            "stage2": _stage(64, 128, 2),
            "stage3": _stage(128, 256, 2),
            "stage4": _stage(256, 512, 2),
        }
        return Classifier(stages, 512, classes, mean, std)


def _stage(c: int, d: int, stride: int) -> nn.Module:
    return nn.Sequential(Block(c, d, stride), Block(d, d, 1))
