"""Recode: a learnt map of the penultimate features onto codes of the same width."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import final

import torch
from torch import Tensor, nn
from torch.nn.functional import relu

from core.models.classifier import Transform

__support__ = True


@final
class Recode(Transform):
    """Linear layers of these `widths` with ReLU between them, and no shortcut round them.

    A single layer starts as the identity, which changes no feature by a bit; more layers start at
    random, from torch's current generator.
    """

    def __init__(self, widths: Sequence[int]) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(widths))
        if len(widths) == 2:
            nn.init.eye_(self.layers[0].weight)  # pyright: ignore[reportArgumentType]
            nn.init.zeros_(self.layers[0].bias)  # pyright: ignore[reportArgumentType]

    @classmethod
    def blank(cls, state: Mapping[str, Tensor]) -> "Recode":
        first = state["layers.0.weight"]
        rest = [state[f"layers.{i}.weight"] for i in range(1, len(state) // 2)]
        with torch.random.fork_rng(devices=[]):
            made = cls([first.shape[1], len(first), *map(len, rest)])
        return made.to(first.dtype)

    def forward(self, z: Tensor) -> Tensor:
        """Codes (..., d) of features (..., d)."""
        first, *rest = self.layers
        z = first(z)
        for layer in rest:
            z = layer(relu(z))
        return z
