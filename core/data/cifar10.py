"""CIFAR-10: 60,000 photographs; ten classes, 32 pixels, colour."""

import pickle
import tarfile
from collections.abc import Iterable
from pathlib import Path
from typing import ClassVar, final

import numpy as np
import torch

from core.data import download
from core.data.base import Source, silent
from core.data.coarse import coarse, refuse
from core.data.examples import Dataset, Examples, number

CLASSES = (
    "airplane",
    "automobile",
    "bird",
    "cat",
    "deer",
    "dog",
    "frog",
    "horse",
    "ship",
    "truck",
)
GROUPS = {
    "vehicles": ("airplane", "automobile", "ship", "truck"),
    "animals": ("bird", "cat", "deer", "dog", "frog", "horse"),
}
"""As Dine and Furon (2026, arxiv.org/abs/2605.10680) have them."""


@final
class Cifar10(Source):
    """Krizhevsky 2009, Learning Multiple Layers of Features from Tiny Images."""

    argument: ClassVar = "coarse for vehicles and animals, of which one kind can be forgotten"
    variants: ClassVar = ("coarse",)
    download: ClassVar = True

    def load(self, argument="", report=silent):
        refuse(argument, "cifar10")
        from torchvision.datasets import CIFAR10

        files = [(CIFAR10.url, CIFAR10.tgz_md5)]
        [archive] = download.fetch("cifar10", "CIFAR-10", files, report)
        train, test = (
            [f"{CIFAR10.base_folder}/{name}" for name, _ in part]
            for part in (CIFAR10.train_list, CIFAR10.test_list)
        )
        first = batches(archive, train, "labels", 0)
        data = Dataset(
            name="cifar10",
            classes=CLASSES,
            train=first,
            test=batches(archive, test, "labels", len(first)),
            licence="none stated; cite Krizhevsky 2009",
            origin="Downloaded from the address that torchvision names.",
            model="resnet18",
        )
        return coarse(data, GROUPS, "cifar10:coarse") if argument else data

    def classes(self, argument=""):
        return tuple(GROUPS) if argument else CLASSES


def batches(archive: Path, members: Iterable[str], labels: str, start: int) -> Examples:
    """The images in `members` of a CIFAR archive, with the labels called `labels`.

    The members are pickles: only an archive whose checksum is known may come here.
    """
    entries = []
    with tarfile.open(archive) as tar:
        for member in members:
            file = tar.extractfile(member)
            assert file is not None, member
            entries.append(pickle.load(file, encoding="latin1"))
    x = torch.from_numpy(np.concatenate([e["data"] for e in entries])).view(-1, 3, 32, 32)
    y = torch.tensor([label for e in entries for label in e[labels]])
    return number(x, y, start)
