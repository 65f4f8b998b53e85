"""CIFAR-100: 60,000 photographs; 100 classes or 20 superclasses, 32 pixels, colour."""

from itertools import chain
from typing import ClassVar, final

from core.data import download
from core.data.base import Source, silent
from core.data.cifar10 import batches
from core.data.coarse import coarse, refuse
from core.data.examples import Dataset

SUPERCLASSES = {
    "aquatic mammals": "beaver, dolphin, otter, seal, whale",
    "fish": "aquarium fish, flatfish, ray, shark, trout",
    "flowers": "orchid, poppy, rose, sunflower, tulip",
    "food containers": "bottle, bowl, can, cup, plate",
    "fruit and vegetables": "apple, mushroom, orange, pear, sweet pepper",
    "household electrical devices": "clock, keyboard, lamp, telephone, television",
    "household furniture": "bed, chair, couch, table, wardrobe",
    "insects": "bee, beetle, butterfly, caterpillar, cockroach",
    "large carnivores": "bear, leopard, lion, tiger, wolf",
    "large man-made outdoor things": "bridge, castle, house, road, skyscraper",
    "large natural outdoor scenes": "cloud, forest, mountain, plain, sea",
    "large omnivores and herbivores": "camel, cattle, chimpanzee, elephant, kangaroo",
    "medium mammals": "fox, porcupine, possum, raccoon, skunk",
    "non-insect invertebrates": "crab, lobster, snail, spider, worm",
    "people": "baby, boy, girl, man, woman",
    "reptiles": "crocodile, dinosaur, lizard, snake, turtle",
    "small mammals": "hamster, mouse, rabbit, shrew, squirrel",
    "trees": "maple tree, oak tree, palm tree, pine tree, willow tree",
    "vehicles 1": "bicycle, bus, motorcycle, pickup truck, train",
    "vehicles 2": "lawn mower, rocket, streetcar, tank, tractor",
}
"""Labels of both kinds count in alphabetical order."""
GROUPS = {name: five.split(", ") for name, five in sorted(SUPERCLASSES.items())}


@final
class Cifar100(Source):
    """Krizhevsky 2009, Learning Multiple Layers of Features from Tiny Images."""

    argument: ClassVar = "coarse for the 20 superclasses, of which one class can be forgotten"
    variants: ClassVar = ("coarse",)
    download: ClassVar = True

    def load(self, argument="", report=silent):
        from torchvision.datasets import CIFAR100

        refuse(argument, "cifar100")
        files = [(CIFAR100.url, CIFAR100.tgz_md5)]
        [archive] = download.fetch("cifar100", "CIFAR-100", files, report)
        train, test = ([f"{CIFAR100.base_folder}/{part}"] for part in ("train", "test"))
        first = batches(archive, train, "fine_labels", 0)
        data = Dataset(
            name="cifar100",
            classes=self.classes(),
            train=first,
            test=batches(archive, test, "fine_labels", len(first)),
            licence="none stated; cite Krizhevsky 2009",
            origin="Downloaded from the address that torchvision names.",
            model="resnet18",
        )
        return coarse(data, GROUPS, "cifar100:coarse") if argument else data

    def classes(self, argument: str = "") -> tuple[str, ...]:
        """The 100 classes, or the superclasses for `coarse`.

        Raises:
            DataError: another argument.
        """
        refuse(argument, "cifar100")
        return tuple(GROUPS) if argument else tuple(sorted(chain(*GROUPS.values())))
