"""Collapse: how near class means and head rows are to neural collapse (NC1 to NC4, angles).

The definitions are those of Papyan et al. (2020, doi.org/10.1073/pnas.2015509117). Everything is
float64 and differentiable, and counts classes alike however many samples each has.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from core.geometry.etf import ideal_cosine

__support__ = True

RCOND = 1e-6
"""Share of the largest eigenvalue of the between-class covariance below which one counts as 0."""
ROUNDING = 1e-6
"""Lengths below this share of the scale at hand are float32 rounding, not geometry."""


class Undefined(ValueError):
    """A quantity that these features or this head do not have; the text says why."""


@dataclass(frozen=True, eq=False)
class ClassMeans:
    """Means of the classes that have samples; an absent class is left out, never a zero mean."""

    means: Tensor
    """One row a class in `classes` (k d)."""
    classes: tuple[int, ...]
    missing: tuple[int, ...]
    share: Tensor
    """Row c holds what each sample contributes to mean c (k n); a row sums to 1."""


def class_means(z: Tensor, y: Tensor, classes: int, weights: Tensor | None = None) -> ClassMeans:
    """Means of the features `z` (n d) by the labels `y` (n) in 0 .. classes - 1.

    `weights` (n, all 1 if left out) are for those who ask how much each sample matters.

    Raises:
        Undefined: fewer than two classes have a sample, or a feature is not finite.
    """
    counts = torch.bincount(y, minlength=classes)
    present = counts.nonzero().flatten()
    missing = tuple((counts == 0).nonzero().flatten().tolist())
    if len(present) < 2:
        raise Undefined(f"fewer than two classes have a sample (missing: {missing})")
    if not torch.isfinite(z).all():
        raise Undefined("features are not finite")
    share = _shares(y, present, weights)
    return ClassMeans(share @ z.double(), tuple(present.tolist()), missing, share)


def all_means(z: Tensor, y: Tensor, classes: int) -> Tensor:
    """One mean for each of the `classes` (k d), NaN for a class without a sample.

    For pictures, which keep a place for every class; `class_means` is for readings.
    """
    return _shares(y, torch.arange(classes)) @ z.double()


def centred(vectors: Tensor) -> Tensor:
    """The rows minus their mean, which weighs classes alike (k d).

    Raises:
        Undefined: the rows coincide.
    """
    vectors = vectors.double()
    apart = vectors - vectors.mean(0)
    if bool(apart.norm(dim=1).max() <= ROUNDING * vectors.norm(dim=1).max()):
        raise Undefined("the class means or head rows coincide")
    return apart


def within(z: Tensor, found: ClassMeans) -> Tensor:
    """Within-class covariance (d d), averaged over classes; a class of one sample has none.

    Raises:
        Undefined: no class has two samples.
    """
    several = (found.share > 0).sum(1) > 1
    if not several.any():
        raise Undefined("no class has two samples")
    own = found.share[several].sum(0)
    # A sample belongs to one class, so the largest share picks its mean.
    apart = z.double() - found.means[found.share.detach().argmax(0)]
    return (apart * own[:, None]).T @ apart / several.sum()


def between(means: Tensor) -> Tensor:
    """Between-class covariance (d d) of the class means (k d), which has rank k - 1 at most."""
    apart = centred(means)
    return apart.T @ apart / len(means)


def variability(z: Tensor, found: ClassMeans) -> Tensor:
    """NC1: tr(S_W pinv(S_B)) / k, 0 when every sample sits at its class mean."""
    inverse = torch.linalg.pinv(between(found.means), rtol=RCOND, hermitian=True)
    return (within(z, found) * inverse).sum() / len(found.classes)


def equinorm(vectors: Tensor) -> Tensor:
    """NC2: standard deviation of the rows' lengths over their mean, 0 when all are as long.

    Centre class means first; the deviation divides by k.

    Raises:
        Undefined: all rows are zero.
    """
    lengths = vectors.double().norm(dim=1)
    if not bool(lengths.max() > 0):
        raise Undefined("all vectors are zero")
    return lengths.std(correction=0) / lengths.mean()


def equiangular(vectors: Tensor) -> Tensor:
    """NC2: standard deviation of the cosines of all pairs, 0 when all angles are equal.

    Raises:
        Undefined: a row has no direction.
    """
    return cosines(vectors).std(correction=0)


def max_angle(vectors: Tensor) -> Tensor:
    """NC2: mean of |cosine + 1 / (k - 1)| over all pairs, 0 when they are as far apart as k can.

    Raises:
        Undefined: a row has no direction.
    """
    return (cosines(vectors) - ideal_cosine(len(vectors))).abs().mean()


def duality(head: Tensor, means: Tensor) -> Tensor:
    """NC3: squared distance of head rows and centred means, each of length 1 as a whole; in [0, 4].

    Raises:
        Undefined: the head is zero, or the means coincide.
    """
    apart, head = centred(means), head.double()
    if not bool(head.norm() > 0):
        raise Undefined("the head is zero")
    return (head / head.norm() - apart / apart.norm()).square().sum()


def nearest(z: Tensor, means: Tensor) -> Tensor:
    """The row of `means` that is nearest to each sample (n), which NC4 compares with the head.

    Raises:
        Undefined: the means coincide.
    """
    centred(means)
    return torch.cdist(z.double(), means).argmin(1)


def angles(vectors: Tensor) -> Tensor:
    """Angles between all rows in degrees (k k), NaN for a row without a direction.

    Centre first for the angles seen from the rows' mean: a vector added to all head rows changes
    raw angles, though no prediction.
    """
    unit = _units(vectors)
    return _angle(unit[:, None], unit[None, :])


def angles_from_centre(rows: Tensor) -> Tensor:
    """`angles` of the rows (k d) seen from their mean; rows that are NaN do not count."""
    known = ~rows.isnan().any(1)
    apart = rows.double() - rows[known].double().mean(0)
    return angles(apart.masked_fill(~known[:, None], 0.0))


def mean_angle(vectors: Tensor) -> Tensor:
    """Mean angle of all pairs of rows in degrees; `etf.ideal_angle` is the one under collapse.

    Raises:
        Undefined: a row has no direction.
    """
    return _angle(*_paired(vectors)).mean()


def cosines(vectors: Tensor) -> Tensor:
    """Cosines of all pairs of rows (k (k - 1) / 2).

    Raises:
        Undefined: a row has no direction.
    """
    one, other = _paired(vectors)
    return (one * other).sum(1)


def _shares(y: Tensor, labels: Tensor, weights: Tensor | None = None) -> Tensor:
    """What each sample adds to the mean of each of the `labels` (k n); NaN for one without any."""
    member = (y[None, :] == labels[:, None]).double()
    if weights is not None:
        member = member * weights
    return member / member.sum(1, keepdim=True)


def _paired(vectors: Tensor) -> tuple[Tensor, Tensor]:
    unit = _units(vectors)
    if bool(unit.isnan().any()):
        raise Undefined("a class lies at the centre of the others, where it has no direction")
    row, column = torch.triu_indices(len(unit), len(unit), 1)
    return unit[row], unit[column]


def _units(vectors: Tensor) -> Tensor:
    vectors = vectors.double()
    lengths = vectors.norm(dim=1, keepdim=True)
    return vectors / lengths.masked_fill(lengths <= ROUNDING * lengths.max(), torch.nan)


def _angle(one: Tensor, other: Tensor) -> Tensor:
    # Exact near 0 and 180 degrees, where arccos loses half the digits.
    return torch.rad2deg(2 * torch.atan2((one - other).norm(dim=-1), (one + other).norm(dim=-1)))
