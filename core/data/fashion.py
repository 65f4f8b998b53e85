"""Fashion: 15,000 pictures of clothes, embedded; ten classes, 28 pixels, grey."""

from typing import ClassVar, final

import numpy as np
import torch

from core.data.assets import ASSETS
from core.data.base import Source, silent
from core.data.coarse import coarse, refuse
from core.data.examples import DataError, Dataset, number

CLASSES = (
    "T-shirt",
    "Trouser",
    "Pullover",
    "Dress",
    "Coat",
    "Sandal",
    "Shirt",
    "Sneaker",
    "Bag",
    "Ankle boot",
)
GROUPS = {
    "tops": ("T-shirt", "Pullover", "Coat", "Shirt"),
    "trousers and dresses": ("Trouser", "Dress"),
    "footwear": ("Sandal", "Sneaker", "Ankle boot"),
    "bags": ("Bag",),
}


@final
class Fashion(Source):
    """A stratified subset of Fashion-MNIST (Xiao et al. 2017, arxiv.org/abs/1708.07747).

    1,200 training and 300 test images a class; the ids are the file's rows, test after training.
    """

    argument: ClassVar = "coarse for four groups, of which one kind can be forgotten"
    variants: ClassVar = ("coarse",)
    file: ClassVar = ASSETS / "data" / "fashion.npz"

    def load(self, argument="", report=silent):
        refuse(argument, "fashion")
        if not self.file.is_file():
            raise DataError(
                "assets/data/fashion.npz is missing; python assets/scripts/fashion.py rebuilds it."
            )
        with np.load(self.file, allow_pickle=False) as z:
            x = {part: torch.from_numpy(z[f"{part}_images"])[:, None] for part in ("train", "test")}
            y = {part: torch.from_numpy(z[f"{part}_labels"]) for part in ("train", "test")}
        data = Dataset(
            name="fashion",
            classes=CLASSES,
            train=number(x["train"], y["train"], 0),
            test=number(x["test"], y["test"], len(x["train"])),
            licence="MIT, Zalando SE",
            origin="Part of Fashion-MNIST, embedded; assets/scripts/fashion.py makes it.",
        )
        return coarse(data, GROUPS, "fashion:coarse") if argument else data

    def classes(self, argument=""):
        return tuple(GROUPS) if argument else CLASSES
