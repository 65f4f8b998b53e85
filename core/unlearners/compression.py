"""Compression: what the two forms of representation unlearning share."""

from collections.abc import Iterator

import torch
from torch import Tensor

from core.data.examples import DataError, Examples
from core.data.targets import TargetError
from core.models.classifier import Classifier
from core.models.recode import Recode
from core.unlearners.base import Citation

__support__ = True

CITE = Citation(
    "Almudévar, Ortega",
    2026,
    "Representation Unlearning: Forgetting through Information Compression",
    "arxiv.org/abs/2601.21564",
)


def inserted(model: Classifier, hidden: int, width: int) -> Recode:
    """The map that now stands between `model`'s body and head, with `hidden` layers of `width`.

    Raises:
        TargetError: something stands there already.
    """
    if model.transform is not None:
        raise TargetError("The model already has a transform between its body and its head.")
    d = model.head.in_features
    made = Recode([d, *[width] * hidden, d]).to(model.head.weight)
    model.transform = made
    return made


@torch.no_grad()
def features(model: Classifier, examples: Examples) -> Tensor:
    """The features (n d) of all the examples, by a model in eval mode."""
    return torch.cat([model.features(b.x) for b in examples.ordered(500)])


def rows(z: Tensor, size: int, rng: torch.Generator) -> Iterator[Tensor]:
    """Shuffled batches of the rows of `z`, without end.

    Raises:
        DataError: there are none.
    """
    if not len(z):
        raise DataError("There are no features to draw from.")
    while True:
        for part in torch.randperm(len(z), generator=rng).split(size):
            yield z[part.to(z.device)]


def noisy(z: Tensor, noise: float, samples: int, rng: torch.Generator) -> Tensor:
    """`samples` copies of the features (m n d), each with normal noise of its own."""
    if not noise:
        return z[None]
    drawn = torch.randn(samples, *z.shape, generator=rng, dtype=z.dtype)
    return z + noise * drawn.to(z.device)


def pull(codes: Tensor, points: Tensor) -> Tensor:
    """Mean of |code - point|^2 over all pairs of codes (..., d) and points (p d).

    The mean square about points is the square about their mean plus their own variance, so no
    pair is ever formed.
    """
    centre = points.mean(0)
    own = (points - centre).square().sum(1).mean()
    return (codes - centre).square().sum(-1).mean() + own
