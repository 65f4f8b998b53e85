"""Last layers: what the methods share that train only the end of the model."""

from torch import nn

from core.models.classifier import Classifier

__support__ = True


def parts(model: Classifier) -> list[nn.Module]:
    """The stages of the body and the head, input side first."""
    return [*model.body.values(), model.head]


def freeze(model: Classifier, k: int) -> None:
    """Leave only the last `k` parts to train; a frozen part's running statistics stay as well."""
    for part in parts(model)[:-k]:
        part.eval().requires_grad_(False)
