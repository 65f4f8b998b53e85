"""Readings of answers: AUS as published, KL by hand, accuracies of the sets they name, time."""

import dataclasses
import math

import pytest
import seen
import torch
from hypothesis import given
from hypothesis import strategies as st
from seen import read, rng
from torch import nn

from core.data.examples import Examples
from core.metrics import METRICS
from core.metrics.aus import aus
from core.metrics.base import Unavailable
from core.metrics.divergence import HIGHEST, kl
from core.metrics.outputs import observe
from core.models.classifier import Classifier

ORIGINAL, UNLEARNED, GOLD = (seen.outputs(m) for m in range(3))

PUBLISHED = {  # retained and forget accuracy in %, printed score
    "CIFAR-10": [
        ("Original", 94.47, 95.03, 0.51),
        ("Retrained", 94.68, 0.00, 1.00),
        ("Gradient Ascent", 86.71, 15.37, 0.80),
        ("Boundary Shrink", 85.30, 12.33, 0.81),
        ("DELETE", 88.73, 2.43, 0.92),
        ("POUR-P", 94.97, 0.00, 1.01),
        ("POUR-D", 92.86, 0.37, 0.97),
    ],
    "CIFAR-100": [
        ("Original", 77.69, 92.00, 0.52),
        ("Retrained", 76.28, 0.00, 1.00),
        ("Gradient Ascent", 50.46, 6.00, 0.69),
        ("Random Label", 61.98, 11.00, 0.76),
        ("DELETE", 64.67, 8.00, 0.81),
        ("Boundary Shrink", 68.87, 4.00, 0.88),
        ("POUR-P", 77.65, 0.00, 1.00),
        ("POUR-D", 73.44, 1.00, 0.95),
    ],
}


def test_aus_reproduces_the_published_rows():
    off = set()
    for data, table in PUBLISHED.items():
        before = table[0][1] / 100
        for method, kept, left, printed in table:
            if (
                abs(aus(before, kept / 100, left / 100) - printed) > 0.005 + 1e-9
            ):  # two digits are printed
                off.add((data, method))
    # POUR-D computes to 0.980 where 0.97 is printed; Retrained is set to 1 by convention there.
    assert off == {("CIFAR-10", "POUR-D"), ("CIFAR-100", "Retrained")}


def test_aus_of_the_original_is_one_over_one_plus_its_forget_accuracy():
    left = read("forget_accuracy_test", ORIGINAL).value
    assert left > 0.5
    assert read("aus", ORIGINAL, ORIGINAL).value == pytest.approx(1 / (1 + left), abs=1e-12)


def test_aus_is_low_for_a_destroyed_model():
    silent = {name: torch.zeros_like(z) for name, z in ORIGINAL.logits.items()}
    destroyed = dataclasses.replace(ORIGINAL, logits=silent)
    kept = read("retain_accuracy_test", ORIGINAL).value
    assert read("aus", destroyed, ORIGINAL).value == pytest.approx(1 - kept, abs=1e-12)


def test_kl_is_taken_from_gold_to_the_model():
    gold, model = torch.tensor([[0.9, 0.1]]).log(), torch.tensor([[0.5, 0.5]]).log()
    expected = 0.9 * math.log(0.9 / 0.5) + 0.1 * math.log(0.1 / 0.5)
    assert float(kl(gold, model)) == pytest.approx(expected, abs=1e-7)  # float32 logits


@given(st.integers(0, 999))
def test_kl_is_never_negative_and_nought_only_for_the_same_answers(seed):
    gold, model = (3 * torch.randn(20, 5, generator=rng(s)) for s in (seed, seed + 1))
    assert (kl(gold, model) > 0).all()
    assert (kl(gold, gold) == 0).all()
    assert (kl(gold, gold + 2) < 1e-12).all()  # softmax ignores a shift


def test_kl_to_a_masked_class_is_finite():
    gold, model = torch.tensor([[50.0, 0.0]]), torch.tensor([[-torch.inf, 0.0]])
    assert HIGHEST - 1 < float(kl(gold, model)) <= HIGHEST


@pytest.mark.parametrize("name", ["kl_forget", "kl_retain", "kl_test"])
def test_gold_is_at_no_distance_from_itself(name):
    assert read(name, GOLD, GOLD).value == 0
    assert read(name, UNLEARNED, GOLD).value > 0.01


def test_accuracies_read_the_set_they_name():
    logits = {n: nn.functional.one_hot(y, 4).float() for n, y in ORIGINAL.y.items()}
    names = {"forget": "forget_accuracy_train", "retain": "retain_accuracy_train"}
    names |= {"test_forget": "forget_accuracy_test", "test_retain": "retain_accuracy_test"}
    for wrong, metric in names.items():
        model = dataclasses.replace(ORIGINAL, logits=logits | {wrong: -logits[wrong]})
        values = {m: read(m, model).value for m in names.values()}
        assert values == {m: float(m != metric) for m in names.values()}


def test_external_accuracies_need_an_external_test_set():
    there = seen.outputs(0, external=True)
    for name in ("external_forget_accuracy", "external_retain_accuracy"):
        assert 0.5 < read(name, there).value <= 1
        with pytest.raises(Unavailable, match="this data set has no external test set"):
            read(name, ORIGINAL)


def test_relative_time_is_a_share_of_golds():
    quick = seen.outputs(0, seconds=1.0)
    assert read("rte", quick, seen.outputs(2, seconds=4.0)).value == 0.25
    assert read("seconds", quick).value == 1
    for seconds in (None, 0.0):
        with pytest.raises(Unavailable):
            read("rte", quick, seen.outputs(2, seconds=seconds))


def net(seed: int) -> Classifier:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        first = nn.Sequential(nn.Conv2d(1, 5, 3), nn.ReLU())
        last = nn.Sequential(nn.Conv2d(5, 6, 3), nn.BatchNorm2d(6), nn.ReLU())
        return Classifier({"stem": first, "last": last}, 6, 3, torch.zeros(1), torch.ones(1))


def test_the_size_of_batches_changes_no_reading():
    draw, start = rng(), 0
    parts = {}
    for name in seen.SETS:
        y = torch.tensor([0] if name.endswith("forget") else [1, 2]).repeat_interleave(25)
        x = torch.randint(0, 256, (len(y), 1, 8, 8), generator=draw, dtype=torch.uint8)
        parts[name] = Examples(
            x // (y.view(-1, 1, 1, 1) + 1), y, torch.arange(start, start + len(y))
        )
        start += len(y)
    for name, metric in METRICS.items():
        values = []
        for size in (7, 500):
            model, other = (observe(net(s), parts, (0,), seconds=1.0, batch=size) for s in (0, 1))
            try:
                values.append(metric().measure(model, other, "penultimate", 0).value)
            except Unavailable:
                values.append(0.0)
        # Float32 sums in another order: seven digits, and a probe may turn on a hair.
        assert values[0] == pytest.approx(values[1], rel=1e-3, abs=1e-3), name
