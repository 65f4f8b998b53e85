"""PathMNIST: 107,180 patches of colon tissue from two clinics; nine classes, 28 pixels, colour."""

from typing import ClassVar, final

from core.data import download, npz
from core.data.base import Source, silent
from core.data.examples import Dataset


@final
class PathMNIST(Source):
    """Yang et al. 2023, MedMNIST v2 (arxiv.org/abs/2110.14795), from Kather et al. 2019.

    Its validation part is the test set here, for it comes from the clinic of the training set;
    its test part comes from another clinic and is the external test set.
    """

    download: ClassVar = True

    def load(self, argument="", report=silent):
        from medmnist import INFO

        info = INFO["pathmnist"]
        files = [(info["url"], info["MD5"])]
        [path] = download.fetch("pathmnist", "PathMNIST", files, report)
        train, val, test = npz.parts(path, "train", "val", "test")
        return Dataset(
            name="pathmnist",
            classes=self.classes(),
            train=train,
            test=val,
            external=test,
            licence="CC BY 4.0, J. N. Kather et al.; MedMNIST",
            origin="Downloaded from the address that medmnist names.",
            model="resnet18",
        )

    def classes(self, argument=""):
        from medmnist import INFO

        label = INFO["pathmnist"]["label"]
        return tuple(label[str(i)] for i in range(len(label)))
