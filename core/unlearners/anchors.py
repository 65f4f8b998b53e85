"""Anchors: one fixed direction in the feature space for each class."""

import hashlib
import io
from collections.abc import Sequence
from functools import cache

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from core.data.assets import ASSETS
from core.data.examples import DataError

__support__ = True

FILE = ASSETS / "anchors" / "anchors.npz"
DIGEST = "af953af8d975b93700e9152d5b3c0763848fba48530f55e080d70a6e110e2c41"
"""SHA-256 of the file: the key of a recipe covers this code, and so covers what is in the file."""


def anchors(kind: str, names: Sequence[str], classes: int, width: int) -> tuple[Tensor, str]:
    """Unit directions (k d, float32) that nothing trains, and a sentence on what they are.

    `semantic` ones need classes whose names tell what they are, and that somebody has described;
    all others get random ones.
    """
    found = described(tuple(names)) if kind == "semantic" else None
    if found is None:
        why = "nobody has described these classes" if kind == "semantic" else "so it was asked"
        return place(torch.eye(classes), width), f"The anchors are random directions: {why}."
    group, points = found
    return place(points, width), f"The anchors are descriptions of the classes of {group}."


def place(points: Tensor, width: int) -> Tensor:
    """Unit points (k m) in `width` dimensions: as they lie to each other, turned at random.

    Where m is more than `width` they are projected onto random dimensions, and come closer or
    part a little.
    """
    m = points.shape[1]
    rng = torch.Generator().manual_seed(0)  # one place for every run: the anchors are no draw of it
    q = torch.linalg.qr(torch.randn(max(m, width), min(m, width), generator=rng).double()).Q
    return normalize(points.double() @ (q if m > width else q.T)).float()


@cache
def described(names: tuple[str, ...]) -> tuple[str, Tensor] | None:
    """The descriptions of exactly these classes, in this order: whose they are, and points (k k).

    Raises:
        DataError: the file is missing or another one.
    """
    wanted = [name.casefold() for name in names]
    for group, (known, points) in _read().items():
        if sorted(wanted) == sorted(known):
            return group, points[[known.index(name) for name in wanted]]
    return None


@cache
def _read() -> dict[str, tuple[list[str], Tensor]]:
    raw = FILE.read_bytes() if FILE.is_file() else b""
    if hashlib.sha256(raw).hexdigest() != DIGEST:
        raise DataError(
            "assets/anchors/anchors.npz is missing or damaged; "
            "python assets/scripts/anchors.py rebuilds it."
        )
    with np.load(io.BytesIO(raw), allow_pickle=False) as z:
        groups = [key.removesuffix("_anchors") for key in z if key.endswith("_anchors")]
        return {
            group: (
                [str(name).casefold() for name in z[f"{group}_classes"]],
                torch.from_numpy(z[f"{group}_anchors"]),
            )
            for group in groups
        }
