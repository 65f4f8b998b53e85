"""Projection: takes a few directions out of the penultimate features."""

from collections.abc import Mapping
from typing import final

import torch
from torch import Tensor

from core.models.classifier import Transform

__support__ = True


@final
class Projection(Transform):
    """z -> z - strength * (z B^T) B, for an orthonormal `basis` B (r d) and strength in [0, 1].

    At strength 1 it is the orthogonal projection onto the complement of the span of B. The d x d
    matrix is never built. As the map is symmetric, applying it to a head's rows ("head form")
    gives the same logits as applying it to the features.
    """

    basis: Tensor
    strength: Tensor

    def __init__(self, basis: Tensor, strength: float = 1.0) -> None:
        super().__init__()
        self.register_buffer("basis", basis.detach().clone())
        self.register_buffer("strength", torch.tensor(strength, dtype=basis.dtype))

    @classmethod
    def blank(cls, state: Mapping[str, Tensor]) -> "Projection":
        return cls(torch.zeros_like(state["basis"]))

    def forward(self, z: Tensor) -> Tensor:
        """Features (n d) without what lies in the span; of their own dtype."""
        wide = torch.promote_types(z.dtype, torch.float32)
        # In half precision (autocast included) a part of the direction would survive.
        with torch.autocast(z.device.type, enabled=False):
            basis, wider = self.basis.to(wide), z.to(wide)
            left = wider - self.strength.to(wide) * (wider @ basis.T) @ basis
        return left.to(z.dtype)


def orthonormal(rows: Tensor, tolerance: float = 1e-6) -> Tensor:
    """Orthonormal rows (r d, float64, on the CPU) with the span of `rows` (k d), r <= k.

    A row whose sine to the span of the rows before it is at most `tolerance` adds nothing.

    Raises:
        ValueError: a row shorter than 1e-12, which has no direction, or one that is not finite.
    """
    rows = rows.detach().cpu().double()  # some accelerators have no float64
    lengths = rows.norm(dim=1, keepdim=True)
    if not (torch.isfinite(lengths).all() and (lengths >= 1e-12).all()):
        raise ValueError("A row of length zero, or one that is not finite, has no direction.")
    basis = rows[:0]
    for unit in rows / lengths:
        rest = unit - (unit @ basis.T) @ basis
        if rest.norm() > tolerance:
            basis = torch.linalg.qr(torch.cat([basis, unit[None]]).T).Q.T
    return basis.contiguous()


def joined(basis: Tensor, rows: Tensor) -> Tensor:
    """An orthonormal basis (float64, on the CPU) of the span of `basis` and `rows` together.

    The product of two projections is none; the projection along this basis is what removing the
    second directions from already projected features has to be.

    Raises:
        ValueError: a row that has no direction.
    """
    return orthonormal(torch.cat([basis.detach().cpu().double(), rows.detach().cpu().double()]))
