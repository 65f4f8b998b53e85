"""The audit's readings: the metric's own, of the right model, against the right other models."""

import dataclasses
from contextlib import suppress
from functools import cache

import numpy as np
import pytest
import seen
import torch

from core.audit import Memo, audit, mean_over
from core.metrics import METRICS
from core.metrics.base import Measured, Unavailable
from core.metrics.outputs import Outputs

ORIGINAL, UNLEARNED, *GOLDS = (seen.outputs(net) for net in (0, 3, 7, 8))
every = pytest.mark.parametrize("name", METRICS)


@cache
def usual() -> dict:
    return audit(ORIGINAL, UNLEARNED, GOLDS, level="class")


def rows(report: dict, name: str) -> dict[str, dict]:
    """The readings called `name`, by tap."""
    found = {r["tap"]: r for r in report["depth"] if r["name"] == name}
    return found or {"penultimate": next(r for r in report["readings"] if r["name"] == name)}


def read(name: str, model: Outputs, tap: str, seed: int = 0) -> Measured | None:
    """The metric's own reading; against gold, the mean over the golds other than `model`."""
    metric = METRICS[name]()
    if "class" not in metric.levels:
        return None
    golds = [gold for gold in GOLDS if gold is not model]
    others = {None: [None], "original": [ORIGINAL], "gold": golds}[metric.against]
    found = []
    for other in others:
        with suppress(Unavailable):
            found.append(metric.measure(model, other, tap, seed))
    return mean_over(found)


@pytest.fixture
def _few(monkeypatch):
    """An audit of one metric of each kind, without a verdict: its call's arguments instead."""
    monkeypatch.setattr("core.audit.judge", lambda *readings, **rest: rest)
    names = ("forget_accuracy_test", "probe_linear", "cka_depth_original", "cka_retain_gold")
    monkeypatch.setattr("core.audit.METRICS", {name: METRICS[name] for name in names})


@every
def test_a_reading_is_its_metrics_own_at_each_tap_of_each_model(name):
    for tap, row in rows(usual(), name).items():
        mine, before = read(name, UNLEARNED, tap), read(name, ORIGINAL, tap)
        assert (row["unavailable"] is None) == (mine is not None)
        if mine is None:
            continue
        assert row["unlearned"] == pytest.approx(mine.value, abs=1e-12)
        assert row["interval"] == pytest.approx([mine.low, mine.high], abs=1e-12)
        assert row["original"] == (None if before is None else pytest.approx(before.value))
        golds = [one.value for gold in GOLDS if (one := read(name, gold, tap))]
        assert row["golds"] == pytest.approx(golds, abs=1e-12)


@every
def test_a_gap_is_what_the_unlearned_model_reads_beyond_the_mean_gold(name):
    for row in rows(usual(), name).values():
        if row["gap"] is not None:
            low, high = row["gap_interval"]
            assert row["gold"] == pytest.approx(np.mean(row["golds"]), abs=1e-12)
            assert row["gold_range"] == [min(row["golds"]), max(row["golds"])]
            assert row["gap"] == pytest.approx(row["unlearned"] - row["gold"], abs=1e-9)
            assert low - 0.01 <= row["gap"] <= high + 0.01  # a bootstrap is not centred exactly


def test_readings_for_all_models_stand_beside_the_last_tap_of_depth():
    for row in usual()["readings"]:
        deep = [r for r in usual()["depth"] if r["name"] == row["name"]]
        assert not deep or deep[-1] == row | {"tap": "penultimate"}


def test_a_reading_without_meaning_for_single_images_is_not_taken():
    original, unlearned, gold = (seen.outputs(net, instances=12) for net in (0, 3, 7))
    report = audit(original, unlearned, [gold], level="instance")
    for name, metric in METRICS.items():
        if "instance" not in metric.levels:
            for row in rows(report, name).values():
                assert row["unavailable"] == "because it has no meaning for instance targets"


@pytest.mark.usefixtures("_few")
@pytest.mark.parametrize("golds", [0, 2])
def test_the_verdict_is_on_these_readings_golds_and_target(golds):
    report = audit(ORIGINAL, UNLEARNED, GOLDS[:golds], level="class", about="Sneaker")
    assert report["verdict"] == {"level": "class", "golds": golds, "about": "Sneaker"}


@pytest.mark.usefixtures("_few")
def test_the_seed_is_the_probes():
    found = []
    for seed in (0, 5):
        report = audit(ORIGINAL, UNLEARNED, GOLDS, level="class", seed=seed)
        expected = read("probe_linear", UNLEARNED, "penultimate", seed)
        found.append(rows(report, "probe_linear")["penultimate"]["unlearned"])
        assert expected is not None
        assert found[-1] == expected.value
    assert found[0] != found[1]


def test_means_over_golds_keep_each_samples_part():
    def measured(*values):
        parts = torch.tensor(values)
        return Measured(float(parts.mean()), 0.0, 1.0, len(values), {"all": parts})

    both = mean_over([measured(0.0, 1.0), measured(1.0, 1.0)])
    assert both is not None
    assert both.parts is not None
    assert both.value == 0.75
    assert both.parts["all"].tolist() == [0.5, 1.0]


# What is kept for the next audit


@pytest.mark.usefixtures("_few")
def test_what_is_kept_changes_no_reading():
    memo: Memo = {}
    audit(ORIGINAL, seen.outputs(4), GOLDS, level="class", seed=5, memo=memo)
    audit(ORIGINAL, seen.outputs(5), GOLDS[:1], level="class", memo=memo)
    fresh = audit(ORIGINAL, UNLEARNED, GOLDS, level="class")
    assert audit(ORIGINAL, UNLEARNED, GOLDS, level="class", memo=memo) == fresh


@pytest.mark.usefixtures("_few")
def test_nothing_of_the_model_under_audit_is_kept():
    memo: Memo = {}
    audit(ORIGINAL, UNLEARNED, GOLDS, level="class", memo=memo)
    kept = {id(part) for key in memo for part in key if isinstance(part, Outputs)}
    assert kept == {id(model) for model in (ORIGINAL, *GOLDS)}


# Features that are still the original's


def test_a_model_that_only_answers_otherwise_shows_what_the_original_shows():
    hidden = {n: z.index_fill(1, torch.tensor(0), -torch.inf) for n, z in ORIGINAL.logits.items()}
    report = audit(ORIGINAL, dataclasses.replace(ORIGINAL, logits=hidden), GOLDS, level="class")
    for row in report["depth"]:
        assert row["unlearned"] == row["original"], row["name"]
    accuracy = rows(report, "forget_accuracy_test")["penultimate"]
    assert accuracy["unlearned"] == 0 < accuracy["original"]


@pytest.mark.parametrize("changed", seen.SETS)
def test_features_that_changed_in_one_set_are_read_anew(changed):
    features = {n: dict(taps) for n, taps in ORIGINAL.features.items()}
    features[changed]["stage1"] = features[changed]["stage1"].flip(0) * 3 + 1
    model = dataclasses.replace(ORIGINAL, features=features)
    report = audit(ORIGINAL, model, GOLDS, level="class")
    for name, metric in METRICS.items():
        if metric.per_tap:
            mine, row = read(name, model, "stage1"), rows(report, name)["stage1"]
            assert mine is not None
            assert row["unlearned"] == pytest.approx(mine.value, abs=1e-12), name
