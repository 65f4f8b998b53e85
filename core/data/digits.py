"""Digits: 1,797 handwritten digits of 8 pixels, which come with scikit-learn."""

from typing import final

import numpy as np
import torch

from core.data.base import Source, silent
from core.data.examples import Dataset, number

SEED = 0


@final
class Digits(Source):
    """A part of the Optical Recognition of Handwritten Digits (Alpaydin and Kaynak 1998,
    doi.org/10.24432/C50P49): four fifths of each digit to train on, the rest to test.
    """

    def load(self, argument="", report=silent):
        from sklearn.datasets import load_digits

        images, labels = map(np.asarray, load_digits(return_X_y=True))
        x = torch.from_numpy(np.rint(images * (255 / 16)).astype(np.uint8)).view(-1, 1, 8, 8)
        y = torch.from_numpy(labels)
        test = _fifth(labels)
        return Dataset(
            name="digits",
            classes=self.classes(),
            train=number(x[~test], y[~test], 0),
            test=number(x[test], y[test], int((~test).sum())),
            licence="CC BY 4.0, E. Alpaydin and C. Kaynak",
            origin="scikit-learn's load_digits, a fifth of each digit held out for the test.",
            mirrors=False,
        )

    def classes(self, argument=""):
        return tuple("0123456789")


def _fifth(labels: np.ndarray) -> torch.Tensor:
    """Which examples (n, bool) are for the test: a fifth of each class, drawn at random."""
    rng = np.random.Generator(np.random.PCG64(SEED))
    held = torch.zeros(len(labels), dtype=torch.bool)
    for label in np.unique(labels):
        rows = rng.permutation(np.flatnonzero(labels == label))
        held[rows[: round(len(rows) / 5)]] = True
    return held
