"""Anchors: described classes lie as their descriptions do, and the file is what its text says."""

import hashlib
import importlib.util
import itertools
import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from core import weights
from core.data import load
from core.data.assets import ASSETS
from core.data.examples import DataError
from core.models.resnet_mini import ResNetMini
from core.unlearners import anchors as module
from core.unlearners.anchors import anchors, described, place

TEXT = ASSETS / "anchors" / "descriptions.json"
CLOTHES = load("fashion").classes


@pytest.mark.parametrize(("k", "width"), [(10, 64), (10, 10), (100, 64), (2, 1)])
@pytest.mark.parametrize("kind", ["semantic", "random"])
def test_anchors_are_of_unit_length_and_nothing_trains_them(kind, k, width):
    names = CLOTHES if k == 10 else ()
    fixed, _ = anchors(kind, names, k, width)
    assert fixed.shape == (k, width)
    torch.testing.assert_close(fixed.norm(dim=1), torch.ones(k))
    assert not fixed.requires_grad
    torch.manual_seed(1)
    assert torch.equal(anchors(kind, names, k, width)[0], fixed)


def test_anchors_lie_to_each_other_as_the_descriptions_do():
    found = described(CLOTHES)
    assert found is not None
    group, points = found
    assert group == "fashion"
    placed = place(points, 64)
    torch.testing.assert_close(placed @ placed.T, points @ points.T, atol=1e-5, rtol=0)
    i = {name: row for row, name in enumerate(CLOTHES)}
    alike = (placed @ placed.T)[i["Sneaker"]]
    assert alike[i["Ankle boot"]] > 3 * alike[i["Trouser"]]
    free, _ = anchors("random", CLOTHES, 10, 64)
    torch.testing.assert_close(free @ free.T, torch.eye(10), atol=1e-5, rtol=0)


def test_the_shipped_anchors_are_what_their_script_makes_of_their_text(tmp_path):
    spec = importlib.util.spec_from_file_location("script", ASSETS / "scripts" / "anchors.py")
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    assert script.build(tmp_path / "anchors.npz") == module.DIGEST
    raw = module.FILE.read_bytes()
    assert (tmp_path / "anchors.npz").read_bytes() == raw
    with np.load(module.FILE, allow_pickle=False) as z:
        assert str(z["text_sha256"]) == hashlib.sha256(TEXT.read_bytes()).hexdigest()


def test_every_class_is_described_without_its_name():
    groups = json.loads(TEXT.read_text())
    assert tuple(groups["fashion"]) == CLOTHES
    assert tuple(groups["digits"]) == load("digits").classes
    for name, phrases in itertools.chain(*(classes.items() for classes in groups.values())):
        assert len(phrases) >= 4
        assert name.casefold() not in "; ".join(phrases).casefold()


def test_descriptions_are_of_exactly_these_classes_in_this_order():
    found, turned = described(CLOTHES), described(tuple(n.upper() for n in CLOTHES[::-1]))
    assert found is not None
    assert turned is not None
    assert torch.equal(turned[1], found[1].flip(0))
    assert described(CLOTHES[:9]) is None
    fixed, said = anchors("semantic", CLOTHES[:9], 9, 64)
    assert torch.equal(fixed, anchors("random", CLOTHES[:9], 9, 64)[0])
    assert said == "The anchors are random directions: nobody has described these classes."


def test_a_damaged_file_is_refused(monkeypatch, tmp_path):
    (tmp_path / "anchors.npz").write_bytes(module.FILE.read_bytes()[:-1])
    monkeypatch.setattr(module, "FILE", tmp_path / "anchors.npz")
    with pytest.raises(DataError, match=r"assets/scripts/anchors\.py"):
        module._read.__wrapped__()


def test_a_model_knows_its_classes_only_where_they_have_names():
    data = load("digits")
    model = weights.blank(data, ResNetMini())
    assert model.names == model.fresh().names == data.classes
    assert weights.blank(replace(data, named=False), ResNetMini()).names == ()


def test_a_file_without_names_only_numbers_its_classes(tmp_path):
    arrays = {f"{p}_images": np.zeros((4, 8, 8), np.uint8) for p in ("train", "test")}
    arrays |= {f"{p}_labels": np.arange(4) % 2 for p in ("train", "test")}
    for named in (False, True):
        names = {"class_names": np.array(["a", "b"])} if named else {}
        held = arrays | names
        np.savez(tmp_path / f"{named}.npz", **held)  # pyright: ignore[reportArgumentType]
        assert load(f"npz:{tmp_path / f'{named}.npz'}").named is named
