"""LEACE: takes out of the features all that a linear classifier could tell a concept by."""

from collections.abc import Mapping
from typing import final

import torch
from torch import Tensor

from core.models.classifier import Transform

__support__ = True


@final
class Leace(Transform):
    """z -> z - L R (z - mean), for `left` L (d r) and `right` R (r d) with R L = I.

    An oblique projection: its rank r is at most the number of concepts, and the d x d matrix is
    never built.
    """

    left: Tensor
    right: Tensor
    mean: Tensor

    def __init__(self, left: Tensor, right: Tensor, mean: Tensor) -> None:
        super().__init__()
        self.register_buffer("left", left.detach().clone())
        self.register_buffer("right", right.detach().clone())
        self.register_buffer("mean", mean.detach().clone())

    @classmethod
    def blank(cls, state: Mapping[str, Tensor]) -> "Leace":
        return cls(*(torch.zeros_like(state[name]) for name in ("left", "right", "mean")))

    def forward(self, z: Tensor) -> Tensor:
        """Features (n d) in which the concept is linearly gone; of their own dtype."""
        wide = torch.promote_types(z.dtype, torch.float32)
        # In half precision (autocast included) a trace of the concept would survive.
        with torch.autocast(z.device.type, enabled=False):
            left, right, mean, wider = (t.to(wide) for t in (self.left, self.right, self.mean, z))
            out = wider - (wider - mean) @ right.T @ left.T
        return out.to(z.dtype)


def fit(z: Tensor, concept: Tensor, *, whiten: bool = True, tolerance: float = 1e-9) -> Leace:
    """The eraser (float64, on the CPU) of `concept` (n m) from features `z` (n d).

    Among all affine maps after which no linear classifier does better than a constant on these
    features, it moves them least in mean square. Without whitening the projection is orthogonal,
    which erases as much and moves them further. Directions whose share of variance, or whose
    covariance with the concept, is at most `tolerance` of the largest count as none.
    """
    z, concept = z.detach().cpu().double(), concept.detach().cpu().double()
    mean = z.mean(0)
    centred = z - mean
    crossed = centred.T @ (concept - concept.mean(0)) / len(z)
    if whiten:
        variances, axes = torch.linalg.eigh(centred.T @ centred / len(z))
        seen = variances > tolerance * variances[-1].clamp_min(1e-300)
        axes, spread = axes[:, seen], variances[seen].sqrt()
        into, back = (axes / spread) @ axes.T, (axes * spread) @ axes.T
    else:
        into = back = torch.eye(z.shape[1], dtype=z.dtype)
    basis, sizes, _ = torch.linalg.svd(into @ crossed, full_matrices=False)
    basis = basis[:, sizes > tolerance * sizes[0].clamp_min(1e-300)]
    return Leace(back @ basis, basis.T @ into, mean)
