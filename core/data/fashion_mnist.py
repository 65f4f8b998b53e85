"""Fashion-MNIST: 70,000 pictures of clothes; ten classes, 28 pixels, grey."""

import gzip
from pathlib import Path
from typing import ClassVar, final

import numpy as np
import torch
from torch import Tensor

from core.data import download
from core.data.base import Source, silent
from core.data.examples import Dataset, number
from core.data.fashion import CLASSES


@final
class FashionMNIST(Source):
    """All of Fashion-MNIST (Xiao et al. 2017, arxiv.org/abs/1708.07747)."""

    download: ClassVar = True

    def load(self, argument="", report=silent):
        from torchvision import datasets

        mirror = datasets.FashionMNIST.mirrors[0]
        files = [(mirror + file, md5) for file, md5 in datasets.FashionMNIST.resources]
        x, y, test_x, test_y = map(
            _idx, download.fetch("fashion_mnist", "Fashion-MNIST", files, report)
        )
        return Dataset(
            name="fashion_mnist",
            classes=CLASSES,
            train=number(x[:, None], y, 0),
            test=number(test_x[:, None], test_y, len(x)),
            licence="MIT, Zalando SE",
            origin="Downloaded from the address that torchvision names.",
        )

    def classes(self, argument=""):
        return CLASSES


def _idx(path: Path) -> Tensor:
    """The uint8 array in a gzipped IDX file: its third byte counts the axes, four bytes each."""
    raw = gzip.decompress(path.read_bytes())
    start = 4 + 4 * raw[3]
    shape = np.frombuffer(raw, ">u4", raw[3], 4).astype(int)
    return torch.from_numpy(np.frombuffer(raw, np.uint8, offset=start).reshape(shape).copy())
