"""Proxy fits: Gaussian class models of the training set, with and without the forget set."""

from dataclasses import dataclass

import torch
from torch import Tensor

__support__ = True

RIDGE = {"pooled": 1e-2, "diagonal": 0.1, "full": 0.1}
"""Added to every covariance's diagonal, as a share of the diagonals' mean."""
FLOOR, FLAT = 1e-6, 1e-8
"""The least that is added, and the mean variance up to which a covariance counts as singular."""

Pair = tuple[Tensor, Tensor]
"""Log-posteriors (n k each) of the proxy of all data and of that of the retained data; a class
that a proxy never saw has -inf."""


@dataclass(frozen=True, eq=False)
class Gaussians:
    """A Gaussian for each class, with `means` (k d) and counts (k).

    `spread` is one covariance for all (1 d d), one each (k d d), or variances (k 1 d).
    """

    means: Tensor
    spread: Tensor
    counts: Tensor

    def joint(self, z: Tensor) -> Tensor:
        """Log-density of `z` (n d) times class count (n k), up to one constant; -inf if absent."""
        return self.density(z) + self.counts.log()

    def density(self, z: Tensor) -> Tensor:
        """Log-densities (n k) of `z` (n d), up to d / 2 log(2 pi)."""
        if self.spread.shape[1] == 1:
            both = zip(self.means, self.spread[:, 0], strict=True)
            far = torch.stack([((z - mean).square() / v).sum(1) for mean, v in both], 1)
            return -(far + self.spread.log().sum((1, 2))) / 2
        roots = torch.linalg.cholesky(self.spread)
        groups = [self.means] if len(roots) == 1 else self.means.split(1)
        far = [_far(z, mean, root) for mean, root in zip(groups, roots, strict=True)]
        volume = 2 * roots.diagonal(dim1=1, dim2=2).log().sum(1)
        return -(torch.cat(far, 1) + volume) / 2


def _far(z: Tensor, means: Tensor, root: Tensor) -> Tensor:
    """Squared Mahalanobis distances (n m) for the covariance root root^T."""
    white, centres = (
        torch.linalg.solve_triangular(root, rows.T, upper=False).T for rows in (z, means)
    )
    exact = "donot_use_mm_for_euclid_dist"
    return torch.cdist(white, centres, compute_mode=exact).square()


def raw(z: Tensor, y: Tensor, k: int, shape: str) -> Gaussians:
    """Means and covariances of features `z` (n d) by labels `y` (n), before any ridge.

    A class without an example has mean 0, and adds nothing to a pooled covariance.
    """
    counts = torch.bincount(y, minlength=k).to(z)
    sums = z.new_zeros(k, z.shape[1]).index_add_(0, y, z)
    means = sums / counts.clamp_min(1)[:, None]
    rest = z - means[y]
    if shape == "pooled":
        freedom = max(1, len(y) - int((counts > 0).sum()))
        return Gaussians(means, (rest.T @ rest / freedom)[None], counts)
    if shape == "diagonal":
        squares = torch.zeros_like(sums).index_add_(0, y, rest.square())
        return Gaussians(means, (squares / counts.clamp_min(1)[:, None])[:, None], counts)
    own = [rest[y == c] for c in range(k)]
    return Gaussians(means, torch.stack([r.T @ r / max(1, len(r)) for r in own]), counts)


def ridged(fit: Gaussians, shape: str) -> Gaussians:
    """The same with every covariance regular."""
    found = _variances(fit.spread)
    some = found[found.sum(1) > 0]
    extra = max(RIDGE[shape] * float(some.mean()) if len(some) else 0.0, FLOOR)
    d = found.shape[1]
    more = 1.0 if shape == "diagonal" else torch.eye(d, dtype=found.dtype)
    return Gaussians(fit.means, fit.spread + extra * more, fit.counts)


def _variances(spread: Tensor) -> Tensor:
    """The diagonals (k d)."""
    return spread[:, 0] if spread.shape[1] == 1 else spread.diagonal(dim1=1, dim2=2)


def naive(z: Tensor, y: Tensor, gone: Tensor, k: int, shape: str) -> Pair:
    """Two fits that know nothing of each other: on all rows, and on those not `gone` (n, bool)."""
    fits = (raw(z, y, k, shape), raw(z[~gone], y[~gone], k, shape))
    initial, retained = (ridged(fit, shape).joint(z).log_softmax(1) for fit in fits)
    return initial, retained


def mixed(z: Tensor, y: Tensor, gone: Tensor, k: int, shape: str) -> Pair:
    """A class of all data is the mixture of its retained and its forgotten Gaussian."""
    kept, lost = raw(z[~gone], y[~gone], k, shape), raw(z[gone], y[gone], k, shape)
    kept, lost = ridged(kept, shape), ridged(_blended(lost, kept, shape), shape)
    return marginal(kept.joint(z), lost.joint(z))


def _blended(lost: Gaussians, kept: Gaussians, shape: str) -> Gaussians:
    """Where too few forgotten rows leave no spread, that of the retained ones, by their share."""
    a, b = lost.counts, kept.counts
    share = a.sum()[None] / (a.sum() + b.sum()) if shape == "pooled" else a / (a + b).clamp_min(1)
    flat = _variances(lost.spread).mean(1) < FLAT
    weight = torch.where(flat, share, 1.0)[:, None, None]
    return Gaussians(lost.means, weight * lost.spread + (1 - weight) * kept.spread, a)


def lifted(z: Tensor, y: Tensor, gone: Tensor, k: int, shape: str) -> Pair:
    """One fit on 2 k cells, (class, retained) and (class, forgotten), that share what they can."""
    cells = ridged(raw(z, y + k * gone, 2 * k, shape), shape).joint(z)
    return marginal(cells[:, :k], cells[:, k:])


def marginal(kept: Tensor, lost: Tensor) -> Pair:
    """Log-posteriors of the classes from the scores (n k each) of their two halves."""
    return torch.logaddexp(kept, lost).log_softmax(1), kept.log_softmax(1)
