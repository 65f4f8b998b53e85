"""Simplex ETF: the arrangement of class means and head rows under neural collapse."""

import math

import torch
from torch import Tensor


def simplex_etf(classes: int, width: int, rng: torch.Generator | None = None) -> Tensor:
    """Unit rows (classes width, float64) with pairwise cosines -1 / (classes - 1), summing to 0.

    sqrt(k / (k - 1)) (I - 1 1^T / k) Q^T with orthonormal columns in Q (Papyan et al. 2020,
    doi.org/10.1073/pnas.2015509117). Without `rng` the frame lies along the first axes; with it,
    it is turned at random.

    Raises:
        ValueError: fewer than two classes, or a width below classes - 1.
    """
    if classes < 2 or width < classes - 1:
        raise ValueError(
            f"A simplex of {classes} classes needs at least 2 classes and {classes - 1} dimensions."
        )
    k = classes
    frame = math.sqrt(k / (k - 1)) * (torch.eye(k, dtype=torch.float64) - 1 / k)
    if width >= k:
        flat = torch.cat([frame, torch.zeros(k, width - k, dtype=torch.float64)], 1)
    else:
        flat = frame @ _sum_free(k)
    return flat if rng is None else flat @ _rotation(width, rng)


def ideal_cosine(classes: int) -> float:
    """-1 / (k - 1): the cosine between two vertices."""
    return -1 / (classes - 1)


def ideal_angle(classes: int) -> float:
    """Degrees between two vertices: 96.379 for ten classes."""
    return math.degrees(math.acos(ideal_cosine(classes)))


def _sum_free(k: int) -> Tensor:
    """An orthonormal basis (k k-1, as columns) of the vectors whose entries sum to 0."""
    start = torch.eye(k, dtype=torch.float64)
    start[:, 0] = 1
    return torch.linalg.qr(start).Q[:, 1:]


def _rotation(width: int, rng: torch.Generator) -> Tensor:
    """A random orthogonal matrix (width width)."""
    return torch.linalg.qr(torch.randn(width, width, dtype=torch.float64, generator=rng)).Q
