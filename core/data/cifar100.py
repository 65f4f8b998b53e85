"""CIFAR-100: 60,000 photographs; 100 classes or 20 superclasses, 32 pixels, colour."""

from typing import ClassVar, final

from core.data import download
from core.data.base import Source, silent
from core.data.cifar10 import batches
from core.data.examples import DataError, Dataset

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


@final
class Cifar100(Source):
    """Krizhevsky 2009, Learning Multiple Layers of Features from Tiny Images."""

    argument: ClassVar = "coarse for the 20 superclasses; nothing for the 100 classes"
    download: ClassVar = True

    def load(self, argument="", report=silent):
        from torchvision.datasets import CIFAR100

        classes = self.classes(argument)
        files = [(CIFAR100.url, CIFAR100.tgz_md5)]
        [archive] = download.fetch("cifar100", "CIFAR-100", files, report)
        labels = f"{argument or 'fine'}_labels"
        train = batches(archive, [f"{CIFAR100.base_folder}/train"], labels, 0)
        return Dataset(
            name="cifar100:coarse" if argument else "cifar100",
            classes=classes,
            train=train,
            test=batches(archive, [f"{CIFAR100.base_folder}/test"], labels, len(train)),
            licence="none stated; cite Krizhevsky 2009",
            origin="Downloaded from the address that torchvision names.",
            model="resnet18",
        )

    def classes(self, argument: str = "") -> tuple[str, ...]:
        """The 100 classes, or the superclasses for `coarse`.

        Raises:
            DataError: another argument.
        """
        if argument not in ("", "coarse"):
            raise DataError(f"cifar100 takes coarse or nothing after a colon, not {argument!r}.")
        if argument:
            return tuple(sorted(SUPERCLASSES))
        return tuple(sorted(name for five in SUPERCLASSES.values() for name in five.split(", ")))
