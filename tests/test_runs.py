"""Runs: models and reports are made once, come back as they were, and are never half there."""

import json
import shutil
from dataclasses import replace

import pytest
import torch

from core import samples, weights
from core.bench import Memory
from core.data import load, targets
from core.data.examples import Dataset, number
from core.metrics.outputs import Outputs
from core.models import MODELS
from core.recipes import Recipe
from core.runs import Cancelled, Runs
from core.store import StoreError
from core.weights import WeightsError


def recipe(unlearner: str = "pour_p", **words) -> Recipe:
    return Recipe.parse(
        dataset="blobs", target="class:blob A", unlearner=unlearner, golds=0, **words
    )


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return Runs(tmp_path_factory.mktemp("runs"), device="cpu")


def same(a: torch.nn.Module, b: torch.nn.Module) -> bool:
    one, other = a.state_dict(), b.state_dict()
    return one.keys() == other.keys() and all(torch.equal(one[k], other[k]) for k in one)


def test_a_model_is_trained_once_and_comes_back_with_its_transform(runs):
    stages: list[str] = []
    first = runs.model(
        recipe().unlearned(), lambda stage, done, of: stages.append(stage), "unlearn"
    )
    assert {"original", "unlearn"} == set(stages)
    again = Runs(runs.root, device="cpu").model(recipe().unlearned())
    assert same(first.model, again.model)
    assert type(again.model.transform).__name__ == "Projection"
    assert again.seconds == first.seconds
    x = load("blobs").test[:9].float().x
    with torch.inference_mode():
        assert torch.equal(first.model(x), again.model(x))


def test_unlearning_leaves_the_kept_original_as_it_was(runs):
    before = runs.model(recipe().original()).model.state_dict()
    before = {name: tensor.clone() for name, tensor in before.items()}
    runs.model(recipe("gradient_ascent").unlearned())
    after = runs.model(recipe().original()).model.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_training_is_the_same_each_time(runs):
    data, kind = load("blobs"), MODELS["mlp"]
    made = weights.train(data, kind(), seed=0, device=torch.device("cpu"))
    assert same(made.model, runs.model(recipe().original()).model)


def test_a_cancelled_training_keeps_nothing(runs):
    def stop(stage: str, done: int, of: int) -> None:
        if stage == "unlearn" and done == 2:
            raise Cancelled

    asked = recipe("finetune")
    with pytest.raises(Cancelled):
        runs.make(asked, stop)
    assert not runs.zoo.has(asked.unlearned())
    assert runs.find(asked) is None
    assert not list((runs.root / "tmp").iterdir())


def test_shipped_weights_are_found_whatever_the_code(runs, tmp_path, monkeypatch):
    asked = recipe().original()
    kept = runs.store.find("models", asked.key)
    (tmp_path / "weights").mkdir()
    for end in ("json", "safetensors"):
        shutil.copy(kept / f"weights.{end}", tmp_path / "weights" / f"blobs.{end}")
    fresh = Runs(tmp_path / "home", device="cpu", assets=tmp_path)
    monkeypatch.setattr("core.codehash.digest", lambda roots: "another code")
    assert fresh.zoo.has(asked)
    assert same(fresh.model(asked).model, runs.model(recipe().original()).model)
    assert not fresh.zoo.has(replace(asked, seed=1))


def test_shipped_runs_are_found_and_copied_before_they_grow(runs, tmp_path):
    record = runs.make(recipe("mask_logits"))
    shutil.copytree(record.path, tmp_path / "runs" / record.key)
    fresh = Runs(tmp_path / "home", device="cpu", assets=tmp_path)
    found = fresh.find(recipe("mask_logits"))
    assert found is not None
    assert found.report == record.report
    path = fresh.layout(recipe("mask_logits"), "pca")
    assert path.exists()
    (found.path / "layout_pca.npz").unlink()
    path = fresh.layout(recipe("mask_logits"), "pca")
    assert fresh.root in path.parents
    assert set(runs.make(recipe("mask_logits")).arrays("layout_pca")) == {"original", "unlearned"}


def test_a_run_without_gold_is_inconclusive_and_says_what_is_missing(runs):
    report = runs.make(recipe("mask_logits")).report
    assert report["verdict"]["name"] == "Inconclusive"
    assert report["seconds"]["retrain"] is None
    assert "spatial" in report["missing"]["attention"]
    assert "NaN" not in json.dumps(report)


def test_what_was_looked_at_is_not_looked_at_again(runs, monkeypatch):
    runs.make(recipe("mask_logits"))
    looked: list[object] = []
    from core import bench

    real = bench.observe
    monkeypatch.setattr(bench, "observe", lambda *a, **k: looked.append(a) or real(*a, **k))
    runs.warm("blobs", "mlp", "class:blob A", 0)
    assert len(looked) == 1  # do_nothing's copy; the original was remembered


def test_damaged_weights_are_one_sentence(runs, tmp_path):
    kept = runs.store.find("models", recipe().original().key)
    for end in ("json", "safetensors"):
        shutil.copy(kept / f"weights.{end}", tmp_path / f"weights.{end}")
    data, kind = load("blobs"), MODELS["mlp"]
    with pytest.raises(WeightsError, match="cannot be used"):
        weights.load(tmp_path / "weights", load("digits"), kind())
    (tmp_path / "weights.safetensors").write_bytes(b"\x80\x04cos\nsystem\n")
    with pytest.raises(WeightsError, match="cannot be used"):
        weights.load(tmp_path / "weights", data, kind())


@pytest.mark.parametrize(
    "name", ["os:system", "core.jobs:Jobs", "core.models.classifier:pool", "core..x:y", ""]
)
def test_only_transforms_of_this_package_are_built(name):
    with pytest.raises(WeightsError, match="no transform"):
        weights.transform_class(name)


def outputs() -> Outputs:
    return Outputs(("penultimate",), {}, {}, {}, {}, torch.zeros(2, 2), torch.zeros(2), ())


def test_memory_is_bounded_and_drops_readings_with_their_models():
    memory = Memory(most=2)
    kept = [outputs() for _ in range(3)]
    for i, one in enumerate(kept):
        memory.keep(str(i), "t", one)
        memory.readings["accuracy", one, None, "penultimate", 0] = ValueError()  # pyright: ignore
        memory.find("0", "t")
    memory.keep("3", "t", outputs())
    assert len(memory) == 2
    assert memory.find("0", "t") is kept[0]
    assert memory.find("1", "t") is None
    assert [key[1] for key in memory.readings] == [kept[0]]


def test_samples_are_the_same_for_everyone_and_bounded():
    n = 13_000
    x, y = torch.zeros(n, 1, 1, 1, dtype=torch.uint8), torch.arange(n) % 3
    data = Dataset("big", ("a", "b", "c"), number(x, y, 0), number(x, y, n), "", "")
    data = replace(data, external=number(x[:30], y[:30], 2 * n))
    target = targets.parse("class:b", data)
    parts, again = (samples.parts(data, target) for _ in range(2))
    sizes = {name: len(part) for name, part in parts.items()}
    assert sizes == {
        "forget": 2000,
        "retain": 3000,
        "test_forget": 4333,
        "test_retain": 8667,
        "external_forget": 10,
        "external_retain": 20,
    }
    for name, part in parts.items():
        assert torch.equal(part.ids, again[name].ids)
        assert torch.equal(part.ids, part.ids.unique())
        assert bool((part.y == 1).all()) is ("forget" in name)


def test_a_record_that_is_gone_is_one_sentence(runs):
    record = runs.make(recipe("mask_logits"))
    gone = replace(record, path=record.path.with_name("gone"))
    with pytest.raises(StoreError, match="no longer kept"):
        _ = gone.report
    with pytest.raises(StoreError, match="not kept"):
        gone.arrays("figures")
