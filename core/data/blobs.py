"""Blobs: six noisy patterns of 8 pixels in colour, for tests."""

from typing import ClassVar, final

import numpy as np
import torch

from core.data.base import Source, silent
from core.data.examples import Dataset, Examples, number

K, TRAIN, TEST, SEED = 6, 150, 100, 0


@final
class Blobs(Source):
    """x = 0.55 (pattern of the class + common pattern) + 1.6 noise, all three standard normal.

    The common pattern makes the classes overlap in direction, as features of real images do.
    One unit is 18 grey levels, so that fewer than one pixel in 100,000 is clipped.
    """

    public: ClassVar = False

    def load(self, argument="", report=silent):
        rng = np.random.Generator(np.random.PCG64(SEED))
        means = 0.55 * (rng.standard_normal((K, 3, 8, 8)) + rng.standard_normal((3, 8, 8)))
        return Dataset(
            name="blobs",
            classes=self.classes(),
            train=_draw(means, TRAIN, 0, rng),
            test=_draw(means, TEST, K * TRAIN, rng),
            licence="MIT, the Forgetscope authors",
            origin="Drawn by core/data/blobs.py with a fixed seed.",
            model="mlp",
            mirrors=False,
        )

    def classes(self, argument=""):
        return tuple(f"blob {letter}" for letter in "ABCDEF")


def _draw(means: np.ndarray, each: int, start: int, rng: np.random.Generator) -> Examples:
    labels = np.repeat(np.arange(K), each)
    units = means[labels] + 1.6 * rng.standard_normal((len(labels), 3, 8, 8))
    pixels = np.clip(np.rint(128 + 18 * units), 0, 255).astype(np.uint8)
    return number(torch.from_numpy(pixels), torch.from_numpy(labels), start)
