"""Shipped weights: measured again, they read what their recipes say."""

import json

import pytest

from core import weights
from core.data import load
from core.data.split import split
from core.data.targets import parse
from core.geometry.collapse import angles_from_centre
from core.metrics.outputs import observe, predicted
from core.models import MODELS
from core.runs import ASSETS

FOLDER = ASSETS / "weights"
ONE_IMAGE = 1 / 3000
"""Another machine may round one image of 3,000 to the other side."""


def measured(stem: str, target: str = "") -> tuple[dict[str, float], dict[str, float]]:
    """Accuracies and head angles now, and as recorded."""
    data = load("fashion")
    model, about = weights.load(FOLDER / stem, data, MODELS["resnet_mini"]())
    parts = {"train": data.train, "test": data.test}
    if target:
        sets = split(data, parse(target, data))
        parts = {n: getattr(sets, n) for n in ("retain", "test_forget", "test_retain")}
    seen = observe(model, parts)
    hits = {n: (predicted(seen.logits[n]) == seen.y[n]).double().mean() for n in parts}
    upper = angles_from_centre(seen.head).triu(1)
    now = {f"{n}_accuracy": float(v) for n, v in hits.items()}
    now["head_angle_mean"] = float(upper[upper > 0].mean())
    now["head_angle_std"] = float(upper[upper > 0].std())
    return now, about["readings"]


def test_the_original_is_in_its_terminal_phase_as_recorded():
    now, recorded = measured("fashion-resnet_mini-original")
    for name, value in now.items():
        assert value == pytest.approx(recorded[name], abs=ONE_IMAGE + 1e-4), name
    assert now["train_accuracy"] >= 0.995
    assert now["test_accuracy"] >= 0.895
    assert now["head_angle_mean"] == pytest.approx(recorded["head_angle_ideal"], abs=1)
    assert now["head_angle_std"] <= 6


def test_a_gold_has_never_seen_its_class_and_reads_as_recorded():
    now, recorded = measured("fashion-resnet_mini-gold-sneaker-1", "class:Sneaker")
    for name, value in now.items():
        assert value == pytest.approx(recorded[name], abs=ONE_IMAGE + 1e-4), name
    assert now["test_forget_accuracy"] == 0


@pytest.mark.parametrize("name", ["fashion", "fashion:coarse"])
def test_every_promised_target_has_three_golds_of_this_data(name):
    plans = [json.loads(p.read_text())["recipe"] for p in FOLDER.glob("*.json")]
    plans = [plan for plan in plans if plan["dataset"] == name]
    targets = [f"class:{c}" for c in load("fashion").classes] + ["random:256"]
    targets = targets if name == "fashion" else ["subclass:Sneaker"]
    golds = [(p["target"], p["seed"]) for p in plans if p["unlearner"]]
    assert len(plans) == 1 + 3 * len(targets)
    assert sorted(golds) == sorted((t, s) for t in targets for s in (1, 2, 3))
    assert {p["digest"] for p in plans} == {load(name).digest}


@pytest.mark.parametrize(
    ("stem", "part", "least", "most"),
    [
        # Sneakers that it has never seen lie between the footwear that it knows.
        ("fashion_coarse-resnet_mini-gold-subclass_sneaker-1", "test_forget", 0.5, 1.0),
        ("fashion-resnet_mini-gold-random_256-1", "forget", 0.8, 0.99),
    ],
)
def test_gold_names_what_it_has_not_seen_by_its_class(stem, part, least, most):
    about = json.loads((FOLDER / f"{stem}.json").read_text())["readings"]
    assert least < about[f"{part}_accuracy"] <= most
