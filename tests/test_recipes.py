"""A key covers all that decides a result, and nothing else."""

import ast
import json
import os
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core import codehash
from core.data import load
from core.data.examples import DataError
from core.data.targets import TargetError
from core.knobs import KnobError
from core.recipes import Recipe, RecipeError
from core.registry import UnknownName
from core.unlearners import UNLEARNERS
from core.unlearners.finetune import Finetune

WORDS: dict[str, Any] = {"dataset": "blobs", "target": "class:blob A", "unlearner": "finetune"}


def recipe(**words) -> Recipe:
    return Recipe.parse(**{**WORDS, **words})


@pytest.fixture
def code(tmp_path, monkeypatch):
    """A package of three modules in which one can edit."""
    for cache in (codehash.digest, codehash.imports, codehash.statements):
        cache.cache_clear()
    monkeypatch.setattr(codehash, "ROOT", tmp_path / "core")
    (tmp_path / "core").mkdir()
    (tmp_path / "core" / "a.py").write_text('"""A."""\nfrom core import b\n\nx = b.y\n')
    (tmp_path / "core" / "b.py").write_text("def y():\n    from core.c import z\n    return z\n")
    (tmp_path / "core" / "c.py").write_text("z = 1\n")
    yield tmp_path / "core"
    for cache in (codehash.digest, codehash.imports, codehash.statements):
        cache.cache_clear()


def digest(*roots: str) -> str:
    for cache in (codehash.digest, codehash.imports, codehash.statements):
        cache.cache_clear()
    return codehash.digest(frozenset(roots))


def test_the_text_form_is_canonical():
    assert recipe(target="class: BLOB a ") == recipe()
    assert recipe().target == "class:blob A"
    assert recipe(target="classes:blob B,blob A").target == "classes:blob A,blob B"
    assert recipe().model == load("blobs").model


def test_a_recipe_survives_json():
    asked = recipe(settings={"lr": "0.003", "epochs": "2"}, seed=4, golds=1)
    again = Recipe.from_json(json.loads(json.dumps(asked.to_json())))
    assert again == asked
    assert again.key == asked.key


@given(st.sampled_from(sorted(UNLEARNERS)), st.floats(1e-5, 1.0), st.integers(0, 9))
def test_every_unlearner_survives_json(name, lr, seed):
    kind = UNLEARNERS[name]
    rate = {k.name: k for k in kind.knobs()}.get("lr")
    fits = rate is not None and rate.low is not None and rate.low <= lr <= (rate.high or 0)
    made = kind(**({"lr": lr} if fits else {}))
    asked = Recipe(dataset="blobs", target="class:blob A", unlearner=made, seed=seed)
    assert Recipe.from_json(json.loads(json.dumps(asked.to_json()))) == asked


@pytest.mark.parametrize(
    "change",
    [
        {"target": "class:blob B"},
        {"unlearner": "gradient_ascent"},
        {"settings": {"epochs": "4"}},
        {"seed": 1},
        {"golds": 2},
        {"dataset": "digits", "target": "class:0"},
    ],
    ids=str,
)
def test_each_field_changes_the_key(change):
    assert recipe(**change).key != recipe().key


def test_a_whole_number_is_the_same_setting_as_its_float():
    whole, fraction = Finetune(lr=1), Finetune(lr=1.0)
    assert replace(recipe(), unlearner=whole).key == replace(recipe(), unlearner=fraction).key


def test_the_model_left_to_the_data_set_is_the_one_named():
    assert replace(recipe(), model="").key == recipe().key


def test_originals_and_golds_are_shared_by_methods():
    one, other = recipe(), recipe(unlearner="gradient_ascent", target="class:blob B")
    assert one.original().key == other.original().key
    assert one.gold(1).key != other.gold(1).key
    assert one.gold(1).key == replace(other, target=one.target).gold(1).key
    assert len({one.gold(seed).key for seed in (1, 2, 3)}) == 3


def test_a_file_with_other_images_is_another_recipe(tmp_path):
    path = tmp_path / "own.npz"
    keys = set()
    for pixel in (0, 1):
        x = np.zeros((4, 8, 8, 1), np.uint8)
        x[0, 0, 0, 0] = pixel
        y = np.array([0, 1, 0, 1])
        np.savez(path, train_images=x, train_labels=y, test_images=x, test_labels=y)
        stamp = 1_000_000_000 + pixel
        os.utime(path, (stamp, stamp))
        keys.add(recipe(dataset=f"npz:{path}", target="class:0").key)
    assert len(keys) == 2


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"dataset": "nope"}, UnknownName, "blobs"),
        ({"unlearner": "nope"}, UnknownName, "finetune"),
        ({"model": "nope"}, UnknownName, "resnet_mini"),
        ({"target": "class:nope"}, TargetError, "blob A"),
        ({"target": "nope"}, TargetError, "class:NAME"),
        ({"unlearner": "pour_p", "target": "random:5"}, TargetError, "class targets only"),
        ({"settings": {"nope": "1"}}, KnobError, "lr"),
        ({"settings": {"lr": "nan"}}, KnobError, "finite"),
        ({"settings": {"lr": "<b>"}}, KnobError, "number"),
        ({"seed": -1}, RecipeError, "seed"),
        ({"seed": 2**31}, RecipeError, "seed"),
        ({"golds": 21}, RecipeError, "golds"),
        ({"golds": True}, RecipeError, "golds"),
        ({"dataset": "npz:/nowhere.npz"}, DataError, ""),
    ],
    ids=str,
)
def test_what_cannot_be_is_one_sentence(change, error, words):
    with pytest.raises(error) as caught:
        recipe(**change)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_json_that_is_no_recipe_is_refused():
    for values in ({}, {"unlearner": None}, recipe().to_json() | {"unlearner": "finetune"}):
        with pytest.raises(RecipeError, match="no recipe"):
            Recipe.from_json(values)


def test_comments_and_docstrings_leave_the_hash(code):
    before = digest("core.a")
    (code / "a.py").write_text('"""Other."""\n# why\nfrom core import b\nx = b.y  # so\n')
    (code / "b.py").write_text('def y():\n    """Y."""\n    from core.c import z\n    return z\n')
    assert digest("core.a") == before


def test_a_changed_statement_behind_two_imports_changes_the_hash(code):
    before = digest("core.a"), digest("core.b"), digest("core.a", "core.c")
    (code / "c.py").write_text("z = 2\n")
    after = digest("core.a"), digest("core.b"), digest("core.a", "core.c")
    assert not set(before) & set(after)


def test_modules_that_are_not_imported_do_not_matter(code):
    before = digest("core.b")
    (code / "a.py").write_text("x = 5\n")
    assert digest("core.b") == before


def test_what_only_a_type_checker_imports_does_not_matter(code):
    (code / "a.py").write_text(
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import x\n"
    )
    before = digest("core.a")
    (code / "a.py").write_text(
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import y\n"
    )
    assert digest("core.a") == before


def test_none_and_empty_are_told_apart_where_they_are_values():
    texts = {
        codehash.dump(ast.parse(code)) for code in ("f(None)", "f()", "f(0)", "f([])", "f('')")
    }
    assert len(texts) == 5


def test_weights_do_not_hang_on_metrics_and_reports_do():
    asked = recipe()
    weights = set(codehash.closure(asked.unlearned().roots()))
    report = set(codehash.closure(asked.roots()))
    assert not {name for name in weights if name.startswith(("core.metrics", "core.audit"))}
    assert {
        "core.unlearners.finetune",
        "core.optim",
        "core.models.mlp",
        "core.data.blobs",
    } <= weights
    assert weights < report
    assert {"core.metrics.rmia", "core.audit", "core.figures", "core.samples"} <= report
    assert "core.unlearners.gradient_ascent" not in report
    assert "core.data.digits" not in report
    assert not report & {"core.cli", "core.jobs", "core.store", "core.runs"}
