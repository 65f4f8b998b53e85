"""Architecture: how to build a classifier, and how to train it."""

import abc
from dataclasses import dataclass
from typing import ClassVar, final

from torch import Tensor

from core.knobs import Knobbed
from core.models.classifier import Classifier
from core.models.training import Training

__support__ = True


@dataclass(frozen=True, kw_only=True)
class Architecture(Knobbed, abc.ABC):
    """A network design; subclasses write `make`."""

    training: ClassVar[Training]

    @abc.abstractmethod
    def make(
        self, shape: tuple[int, int, int], classes: int, mean: Tensor, std: Tensor
    ) -> Classifier:
        """A classifier for images of `shape` (c h w) with fresh weights."""

    @final
    def build(
        self,
        shape: tuple[int, int, int],
        classes: int,
        mean: Tensor,
        std: Tensor,
        *,
        mirrors: bool = True,
    ) -> Classifier:
        """`make`, remembering what is needed to do it again (see `Classifier.fresh`)."""
        model = self.make(shape, classes, mean, std)
        model.recipe, model.mirrors = (self, shape), mirrors
        return model
