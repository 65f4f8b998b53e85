"""Align: how alike two models' features are, whatever their rotation: linear CKA, Procrustes."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

__support__ = True

FLAT = 1e-7
"""A spread below this share of the features' size is float32 rounding, not signal."""


class Undefined(ValueError):
    """A likeness that these features do not have; the text says why, in a few words."""


def cka(x: Tensor, y: Tensor, weights: Tensor | None = None, *, debiased: bool = False) -> float:
    """Linear CKA of two models' features of the same rows (n d, n e), in O(n d e).

    Kornblith et al. 2019, arxiv.org/abs/1905.00414. Features are centred, which is part of the
    definition: without it two unrelated sets of positive features read near 1. In [0, 1];
    `debiased` takes the unbiased HSIC of Song et al. 2012 (jmlr.org/papers/v13/song12a.html),
    which is near 0 for unrelated features however small n is, and may be slightly negative.
    A row of weight w counts as w equal rows.

    Raises:
        Undefined: features that are constant or not finite, or too few rows.
    """
    x, y = _unit(x, weights), _unit(y, weights)
    if debiased:
        _refuse_few(len(x) if weights is None else float(weights.sum()))
    both, own, other = (_hsic(a, b, weights, debiased) for a, b in ((x, y), (x, x), (y, y)))
    return _ratio(both, own, other)


def cka_gram(
    x: Tensor, y: Tensor, weights: Tensor | None = None, *, debiased: bool = False
) -> float:
    """The same number from n x n matrices, as the papers write it: O(n^3), to check `cka` by.

    Raises:
        Undefined: as `cka`.
    """
    rows = torch.arange(len(x))
    if weights is not None:
        rows = rows.repeat_interleave(weights.long())
    x, y = _unit(x, weights)[rows], _unit(y, weights)[rows]
    if debiased:
        _refuse_few(len(x))
    ready, fit = (_hollow, _songs) if debiased else (_twice_centred, _product)
    k, l = ready(x @ x.T), ready(y @ y.T)  # noqa: E741 - the papers' letters
    return _ratio(fit(k, l), fit(k, k), fit(l, l))


def influence(x: Tensor, y: Tensor, *, debiased: bool = False) -> tuple[float, Tensor]:
    """`cka`, and by how much each row (n) moves it: value + mean of these over a resample is, to
    first order, the value of that resample. They sum to zero.

    Raises:
        Undefined: as `cka`.
    """
    x, y = _unit(x, None), _unit(y, None)
    if debiased:
        _refuse_few(len(x))
    both, own, other = (_shares(a, b, debiased) for a, b in ((x, y), (x, x), (y, y)))
    value = _ratio(*(float(s.sum()) for s in (both, own, other)))
    moved = 2 * both / (own.sum() * other.sum()).sqrt()
    return value, len(x) * (moved - value * (own / own.sum() + other / other.sum()))


@dataclass(frozen=True, eq=False)
class Alignment:
    """z -> scale (z - start) rotation + end, the similarity that brings one set on another."""

    rotation: Tensor
    """Orthogonal (d d); with orthonormal rows or columns where the widths differ (d e)."""
    scale: float
    start: Tensor
    end: Tensor
    residual: float
    """Share of the target's spread that stays unexplained, in [0, 1]."""

    def __call__(self, z: Tensor) -> Tensor:
        """Features (m d) in the target's place (m e)."""
        return self.scale * (z.double() - self.start) @ self.rotation + self.end


def procrustes(x: Tensor, y: Tensor) -> Alignment:
    """The rotation, scale and shift of `x` (n d) that come nearest to `y` (n e).

    Schoenemann 1966, doi.org/10.1007/BF02289451. A reflection counts as a rotation.

    Raises:
        Undefined: features that are constant or not finite.
    """
    a, b = centred(x), centred(y)
    left, size, right = torch.linalg.svd(a.T @ b, full_matrices=False)
    spread = float(a.square().sum())
    residual = 1 - float(size.sum()) ** 2 / (spread * float(b.square().sum()))
    start, end = x.double().mean(0), y.double().mean(0)
    return Alignment(left @ right, float(size.sum()) / spread, start, end, max(0.0, residual))


def centred(x: Tensor, weights: Tensor | None = None) -> Tensor:
    """Rows minus their mean, in double precision (n d).

    Raises:
        Undefined: features that are constant or not finite, or fewer than two rows.
    """
    if len(x) < 2:
        raise Undefined("there is no sample" if len(x) == 0 else "one sample has no spread")
    if not torch.isfinite(x).all():
        raise Undefined("features are not finite")
    x = x.double()
    w = torch.ones(len(x), dtype=x.dtype) if weights is None else weights.double()
    z = x - w @ x / w.sum()
    if float(w @ z.square().sum(1)) <= FLAT**2 * float(w @ x.square().sum(1)):
        raise Undefined("features are constant")
    return z


def _unit(x: Tensor, weights: Tensor | None) -> Tensor:
    z = centred(x, weights)
    return z / z.norm()


def _refuse_few(n: float) -> None:
    if n < 4:
        raise Undefined("the unbiased HSIC needs at least four samples")


def _ratio(both: float, own: float, other: float) -> float:
    # Unit features have a biased HSIC of at least 1/d with themselves, so 1e-14 is rounding.
    if min(own, other) <= 1e-14:
        raise Undefined("undefined: the unbiased HSIC of the features with themselves is not > 0")
    return max(-1.0, min(1.0, both / math.sqrt(own * other)))


def _hsic(x: Tensor, y: Tensor, weights: Tensor | None, debiased: bool) -> float:
    """HSIC of centred rows, up to a factor that cancels in `cka`.

    With centred rows the row sums of K without its diagonal are minus the diagonal, so all
    terms of the unbiased estimate come from the d x e moment and the rows' squared lengths.
    """
    total = float((x.T @ (y if weights is None else weights.double()[:, None] * y)).square().sum())
    if not debiased:
        return total
    w = torch.ones(len(x), dtype=x.dtype) if weights is None else weights.double()
    n, k, l = float(w.sum()), x.square().sum(1), y.square().sum(1)  # noqa: E741
    both, product = float(w @ (k * l)), float(w @ k) * float(w @ l)
    return total - n / (n - 2) * both + product / ((n - 1) * (n - 2))


def _shares(x: Tensor, y: Tensor, debiased: bool) -> Tensor:
    """Each row's share of `_hsic` (n); they sum to it."""
    share = ((x @ (x.T @ y)) * y).sum(1)
    if not debiased:
        return share
    n, k, l = len(x), x.square().sum(1), y.square().sum(1)  # noqa: E741
    return share - n / (n - 2) * k * l + k.sum() * l.sum() / (n * (n - 1) * (n - 2))


def _twice_centred(k: Tensor) -> Tensor:
    h = torch.eye(len(k), dtype=k.dtype) - 1 / len(k)
    return h @ k @ h


def _product(k: Tensor, l: Tensor) -> float:  # noqa: E741
    return float(k.flatten() @ l.flatten())


def _hollow(k: Tensor) -> Tensor:
    return k - k.diag().diag()


def _songs(k: Tensor, l: Tensor) -> float:  # noqa: E741
    n = len(k)
    ends = float(k.sum()) * float(l.sum()) / ((n - 1) * (n - 2))
    return _product(k, l) + ends - 2 / (n - 2) * float(k.sum(1) @ l.sum(1))
