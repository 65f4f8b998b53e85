"""Train the shipped models again: originals of `fashion` and `fashion:coarse`, and their golds.

Three golds for each class of `fashion`, for the random images and for the subclass of a first
look. About 55 minutes on two cores. Weights come out the same metric for metric, not bit for bit:
sums depend on the machine and on the number of threads. What is there is left as it is.

    python assets/scripts/weights.py [--out assets/weights] [--golds 3] [--targets class:Bag]
"""

import argparse
import json
import re
import sys
from itertools import product
from pathlib import Path

from safetensors.torch import save_file

from core import weights
from core.compose import versions
from core.data import load
from core.data.split import split
from core.data.targets import parse
from core.devices import choose
from core.metrics.outputs import observe, predicted
from core.model_recipes import ModelRecipe
from core.models import MODELS
from core.models.classifier import Classifier
from core.recipes import Recipe
from core.unlearners import UNLEARNERS
from core.unlearners.base import Unlearned

MODEL = "resnet_mini"
PLAN = {
    "fashion": [*(f"class:{name}" for name in load("fashion").classes), "random:256"],
    "fashion:coarse": ["subclass:Sneaker"],
}
"""Data set to the targets for which golds are shipped."""


def readings(model: Classifier, dataset: str, target: str) -> dict[str, float]:
    """What a test measures again: accuracies and the head's angles."""
    from core.geometry.collapse import angles_from_centre
    from core.geometry.etf import ideal_angle

    data = load(dataset)
    parts = {"train": data.train, "test": data.test}
    if target:
        sets = split(data, parse(target, data))
        wanted = ("retain", "test_forget" if len(sets.test_forget) else "forget", "test_retain")
        parts = {n: getattr(sets, n) for n in wanted}
    seen = observe(model, parts)
    found = {
        f"{name}_accuracy": float((predicted(seen.logits[name]) == seen.y[name]).double().mean())
        for name in parts
    }
    pairs = angles_from_centre(seen.head)
    upper = pairs[pairs.triu(1) > 0]
    ideal = ideal_angle(len(data.classes))
    return found | {
        "head_angle_mean": float(upper.mean()),
        "head_angle_std": float(upper.std()),
        "head_angle_ideal": float(ideal),
    }


def ship(folder: Path, name: str, model: Classifier, about: dict) -> None:
    """Write `name.safetensors` and `name.json`."""
    state = {k: v.detach().cpu().contiguous() for k, v in model.state_dict().items()}
    save_file(state, folder / f"{name}.safetensors")
    text = json.dumps(about | {"transform": None}, indent=1)
    (folder / f"{name}.json").write_text(text + "\n", encoding="utf-8")


def build(folder: Path, dataset: str, targets: list[str], golds: int) -> None:
    """Train and write a data set's original, then each target's golds, skipping what is there."""
    folder.mkdir(parents=True, exist_ok=True)
    data, how, device = load(dataset), MODELS[MODEL](), choose("cpu")
    recipe = ModelRecipe(dataset=dataset, model=MODEL)
    stem = f"{plain(dataset)}-{MODEL}"
    if (folder / f"{stem}-original.json").exists():
        original, _ = weights.load(folder / f"{stem}-original", data, how)
    else:
        made = weights.train(data, how, seed=recipe.seed, device=device)
        original = made.model
        write(folder, f"{stem}-original", made, recipe, dataset, "")
    for target, seed in product(targets, range(1, golds + 1)):
        gold = Recipe.parse(dataset=dataset, target=target, unlearner="retrain").gold(seed)
        name = f"{stem}-gold-{plain(target.removeprefix('class:'))}-{seed}"
        if not (folder / f"{name}.json").exists():
            made = weights.unlearn(
                data, original, UNLEARNERS["retrain"](), target, seed=seed, device=device
            )
            write(folder, name, made, gold, dataset, target)


def write(
    folder: Path, name: str, made: Unlearned, recipe: ModelRecipe, dataset: str, target: str
) -> None:
    """Ship a model with its recipe and readings."""
    about = {"recipe": recipe.plan(), "seconds": made.seconds, "read": made.read, "note": ""}
    about |= {"versions": versions(choose("cpu"))}
    about |= {"readings": readings(made.model, dataset, target)}
    ship(folder, name, made.model, about)
    sys.stderr.write(f"{name}: {about['readings']}\n")


def plain(text: str) -> str:
    """As part of a file name."""
    return re.sub(r"[^a-z0-9-]+", "_", text.lower())


if __name__ == "__main__":
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--out", type=Path, default=Path(__file__).parents[1] / "weights")
    asked.add_argument("--golds", type=int, default=3)
    asked.add_argument("--targets", nargs="+", help="default: all")
    words = asked.parse_args()
    for dataset, targets in PLAN.items():
        chosen = [target for target in targets if target in (words.targets or targets)]
        if chosen:
            build(words.out, dataset, chosen, words.golds)
