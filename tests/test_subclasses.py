"""Subclasses: coarse labels over finer ones, of which one kind is forgotten and its class stays."""

from dataclasses import replace

import pytest
import torch

from core.data import load
from core.data.cifar10 import GROUPS as CIFAR10
from core.data.cifar100 import GROUPS as CIFAR100
from core.data.coarse import coarse
from core.data.examples import Dataset, number
from core.data.fashion import CLASSES, GROUPS
from core.data.split import split
from core.data.targets import TargetError, parse, subclasses
from core.metrics.membership import _draw
from core.verdict import criteria

N = 24
ANIMALS = {"birds": ("hen", "owl"), "fish": ("eel", "cod"), "horses": ("horse",)}


def fine(k: int = 5, external: bool = False) -> Dataset:
    x = torch.arange(3 * N).view(-1, 1, 1, 1).to(torch.uint8)
    y = torch.arange(3 * N) % k
    names = ("cod", "eel", "hen", "horse", "owl")
    parts = [number(x[i : i + N], y[i : i + N], i) for i in range(0, 3 * N, N)]
    return Dataset(
        "tiny", names, parts[0], parts[1], "none", "made", external=parts[2] if external else None
    )


def test_labels_become_coarse_and_the_finer_ones_stay_known():
    data = coarse(fine(external=True), ANIMALS, "tiny:coarse")
    assert data.classes == ("birds", "fish", "horses")
    for part, before in zip(data.parts, fine(external=True).parts, strict=True):
        assert torch.equal(part.x, before.x)
        for label, old, sample in zip(part.y, before.y, part.ids, strict=True):
            assert fine().classes[old] in ANIMALS[data.classes[label]]
            assert data.fine is not None
            assert data.fine[sample] == old


def test_every_class_must_have_its_group():
    with pytest.raises(KeyError, match="horse"):
        coarse(fine(), {"birds": ("hen", "owl"), "fish": ("eel", "cod")}, "tiny:coarse")


@pytest.mark.parametrize("groups", [GROUPS, CIFAR10, CIFAR100])
def test_groups_name_each_class_once(groups):
    names = [name for fines in groups.values() for name in fines]
    assert len(set(names)) == len(names) in (10, 100)


def test_what_differs_in_its_finer_labels_alone_is_other_data():
    data = coarse(fine(), ANIMALS, "tiny:coarse")
    assert data.fine is not None
    swapped = data.fine.clone()
    swapped[[0, 1]] = swapped[[1, 0]]
    assert replace(data, fine=swapped).digest != data.digest


def test_a_subclass_goes_from_every_part_and_its_class_stays():
    data = coarse(fine(external=True), ANIMALS, "tiny:coarse")
    target = parse("subclass:hen", data)
    parts = split(data, target)
    assert set(parts.forget.y.tolist()) == set(parts.test_forget.y.tolist()) == {0}
    assert 0 in parts.retain.y
    assert 0 in parts.test_retain.y
    for part in (parts.forget, parts.test_forget):
        assert torch.equal(part.ids % 5, torch.full((len(part),), 2))
    assert data.external is not None
    assert (data.external.ids[target.mask(data.external, False)] % 5 == 2).all()


def test_a_target_says_which_class_it_is_within():
    data = load("fashion:coarse")
    target = parse("subclass: SNEAKER", data)
    assert (str(target), target.title()) == ("subclass:Sneaker", "Sneaker within footwear")
    assert target.level == "subclass"
    assert subclasses(data) == tuple(name for name in CLASSES if name != "Bag")


def test_a_subclass_that_is_all_of_its_class_is_refused():
    with pytest.raises(TargetError, match="Bag is all there is of bags: forget class:bags instead"):
        parse("subclass:Bag", load("fashion:coarse"))


def test_an_unknown_subclass_lists_those_there_are():
    with pytest.raises(TargetError, match="no subclass 'Hat'; choose from: T-shirt, Trouser"):
        parse("subclass:Hat", load("fashion:coarse"))


def test_members_of_a_subclass_are_weighed_against_unseen_ones_of_it():
    """Were only the class balanced, the subclass alone would tell who is a member."""
    import numpy as np

    y = np.zeros(400, int)
    member = np.arange(400) < 200
    kind = (np.arange(400) % 200) < 100
    kind[200:] = np.arange(200) < 50  # a rarer kind among the unseen
    rows, _ = _draw(y, member, kind, np.random.default_rng(0))
    mine = kind[rows]
    assert member[rows][mine].mean() == member[rows][~mine].mean() == 0.5


def row(name: str, gap: float) -> dict:
    return {
        "name": name, "title": name, "unlearned": 0.5, "gold": 0.5 - gap, "golds": [0.5 - gap],
        "gap": gap, "gap_interval": [gap - 0.001, gap + 0.001], "unavailable": None,
    }  # fmt: skip


def output(level, gap: float) -> bool | None:
    names = ("retain_accuracy_test", "forget_accuracy_test", "forget_accuracy_train")
    readings = [row(n, 0.0 if n.startswith("retain") else gap) for n in names]
    readings += [row("phi_forget_original", 0.0)]
    return criteria(readings, [], level)[1]["holds"]


def test_a_subclass_may_be_answered_neither_more_nor_less_than_by_gold():
    assert [output("subclass", gap) for gap in (-0.2, 0.0, 0.2)] == [False, True, False]
    assert [output("class", gap) for gap in (-0.2, 0.0, 0.2)] == [True, True, False]
