"""Train the shipped models again: the original of `fashion` and three golds for each class.

About 45 minutes on two cores. Weights come out the same metric for metric, not bit for bit: sums
depend on the machine and on the number of threads.

    python assets/scripts/weights.py [--out assets/weights] [--golds 3] [--classes Sneaker,Bag]
"""

import argparse
import json
import sys
from pathlib import Path

from safetensors.torch import save_file

from core import weights
from core.data import load
from core.data.split import split
from core.data.targets import parse
from core.devices import choose
from core.metrics.outputs import observe, predicted
from core.models import MODELS
from core.models.classifier import Classifier
from core.recipes import Recipe
from core.unlearners import UNLEARNERS

DATASET, MODEL = "fashion", "resnet_mini"


def readings(model: Classifier, target: str) -> dict[str, float]:
    """What a test measures again: accuracies and the head's angles."""
    from core.geometry.collapse import angles_from_centre
    from core.geometry.etf import ideal_angle

    data = load(DATASET)
    parts = {"train": data.train, "test": data.test}
    if target:
        sets = split(data, parse(target, data))
        parts = {n: getattr(sets, n) for n in ("retain", "test_forget", "test_retain")}
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


def build(folder: Path, names: list[str], golds: int) -> None:
    """Train and write the original, then each class's golds, skipping what is there."""
    from core.compose import versions

    data, how, device = load(DATASET), MODELS[MODEL](), choose("cpu")
    folder.mkdir(parents=True, exist_ok=True)
    any_target = f"class:{data.classes[0]}"
    recipe = Recipe.parse(
        dataset=DATASET, target=any_target, unlearner="retrain", model=MODEL
    ).original()
    original = weights.train(data, how, seed=recipe.seed, device=device)
    about = {"recipe": recipe.plan(), "seconds": original.seconds, "read": {}, "note": ""}
    about |= {"versions": versions(device), "readings": readings(original.model, "")}
    ship(folder, f"{DATASET}-{MODEL}-original", original.model, about)
    for name in names:
        for seed in range(1, golds + 1):
            target = f"class:{name}"
            gold = Recipe.parse(dataset=DATASET, target=target, unlearner="retrain").gold(seed)
            stem = f"{DATASET}-{MODEL}-gold-{name.lower().replace(' ', '_')}-{seed}"
            if (folder / f"{stem}.json").exists():
                continue
            made = weights.unlearn(
                data, original.model, UNLEARNERS["retrain"](), target, seed=seed, device=device
            )
            about = {"recipe": gold.plan(), "seconds": made.seconds, "read": made.read, "note": ""}
            about |= {"versions": versions(device), "readings": readings(made.model, target)}
            ship(folder, stem, made.model, about)
            sys.stderr.write(f"{stem}: {about['readings']}\n")


if __name__ == "__main__":
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--out", type=Path, default=Path(__file__).parents[1] / "weights")
    asked.add_argument("--golds", type=int, default=3)
    asked.add_argument("--classes", default=",".join(load(DATASET).classes))
    words = asked.parse_args()
    build(words.out, words.classes.split(","), words.golds)
