"""POUR: what its two forms share, the projection and what becomes of the forgotten logits."""

from collections.abc import Sequence

import torch
from torch import Tensor

from core.data.examples import Examples
from core.data.targets import TargetError
from core.models.classifier import Classifier
from core.models.projection import Projection, joined
from core.unlearners.base import Citation

__support__ = True

CITE = Citation(
    "Le et al.",
    2026,
    "POUR: A Provably Optimal Method for Unlearning Representations via Neural Collapse",
    "arxiv.org/abs/2511.19339",
)


def projection(
    model: Classifier, rows: Tensor, labels: Sequence[int], strength: float = 1.0
) -> Projection:
    """The projection that removes `rows` (k d), and what `model` has projected out before.

    `labels` are the classes to forget; at least two others must survive.

    Raises:
        TargetError: too few classes would survive, a row has no direction, or the model has a
            transform that this one cannot be joined with.
    """
    old = model.transform
    if old is not None and not (isinstance(old, Projection) and float(old.strength) == strength):
        raise TargetError(
            "The model already has another transform, or a projection of another strength."
        )
    try:
        basis = joined(rows[:0] if old is None else old.basis, rows)
    except ValueError:
        raise TargetError("A class to forget has a direction of length zero.") from None
    _refuse_few(model, labels, len(basis))
    made = Projection(basis.to(torch.promote_types(rows.dtype, torch.float32)), strength)
    return made.to(rows.device)


def _refuse_few(model: Classifier, labels: Sequence[int], rank: int) -> None:
    """With one survivor the complement holds no direction that could tell it from anything."""
    classes = model.head.out_features
    gone = len({*labels, *model.masked.nonzero().flatten().tolist()})
    if classes - max(gone, rank) < 2:
        raise TargetError(
            f"At least two classes must survive a projection; of {classes} these are too many."
        )


def head_rows(model: Classifier, labels: Sequence[int], centring: str) -> Tensor:
    """The head's rows (k d) for `labels`, less the mean of all rows where `centring` says so.

    Adding one vector to all rows changes no probability, yet it changes every direction. `auto`
    centres when the mean row is longer than 5 % of the mean length of a row.
    """
    weight = model.head.weight.detach()
    mean = weight.mean(0)
    lopsided = bool(mean.norm() > 0.05 * weight.norm(dim=1).mean())
    if centring == "on" or (centring == "auto" and lopsided):
        weight = weight - mean
    return weight[list(labels)]


@torch.no_grad()
def class_means(model: Classifier, forget: Examples, labels: Sequence[int]) -> Tensor:
    """The mean features (k d) of each of the `labels` in the forget set.

    Raises:
        TargetError: the forget set has no image of one of them.
    """
    means = []
    for label in labels:
        own = forget[forget.y == label]
        if not len(own):
            raise TargetError("The forget set has no image of one of its classes.")
        means.append(torch.cat([model.features(b.x) for b in own.ordered(500)]).mean(0))
    return torch.stack(means)


def common_share(means: Tensor, rows: Tensor) -> float:
    """The largest estimated cosine, in [0, 1], between class means (k d) and the common mean.

    The common mean of all classes is out of reach without the retain set. Under neural collapse a
    class mean is the common mean plus a multiple of the class's centred head row (k d); what the
    row does not explain is therefore common.
    """
    cosines = torch.cosine_similarity(means.double(), rows.double(), dim=1).clamp(0, 1)
    return float((1 - cosines.square()).clamp_min(0).sqrt().max())


def settle(model: Classifier, labels: Sequence[int], policy: str) -> None:
    """Deal with the forgotten logits: `mask` (-inf), `zero` (row and bias 0), or `keep`.

    Left alone, a forgotten class still answers with its bias, which under neural collapse beats
    every class that an image is not of.
    """
    rows = list(labels)
    if policy == "mask":
        model.masked[rows] = True
    elif policy == "zero":
        with torch.no_grad():
            model.head.weight[rows] = 0
            model.head.bias[rows] = 0
