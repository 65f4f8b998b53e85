"""The audit as a whole: the same rows for all, exact where it must be, and blind to the method."""

import dataclasses
import json
from pathlib import Path

import pytest
import seen
import torch

from core.audit import audit
from core.data.targets import Level
from core.metrics import METRICS
from core.metrics import cka_retain_gold as cka_file
from core.metrics.base import Measured, gap_of


def found(unlearned, *, golds=(7, 8), level: Level = "class", **options):
    """The audit of `unlearned` against hand-made golds."""
    original = seen.outputs(0, **options)
    models = [seen.outputs(g, **options) for g in golds]
    report = audit(original, unlearned, models, level=level)
    return report, {r["name"]: r for r in report["readings"]}


def test_doing_nothing_reads_exactly_like_the_original():
    report, rows = found(seen.outputs(0))
    for name, row in rows.items():
        if row["unavailable"] is None:
            assert row["unlearned"] == pytest.approx(row["original"], abs=1e-12), name
    assert rows["rus_o"]["unlearned"] == pytest.approx(0, abs=1e-6)
    assert report["verdict"]["name"] != "Erased"


def test_every_metric_has_one_reading_and_every_tap_one_entry():
    report, rows = found(seen.outputs(3))
    assert set(rows) == set(METRICS)
    deep = [n for n, kind in METRICS.items() if kind.per_tap]
    pairs = [(e["name"], e["tap"]) for e in report["depth"]]
    assert sorted(pairs) == sorted((n, tap) for n in deep for tap in seen.TAPS)


def test_gaps_intervals_and_counts_are_there_where_a_value_is():
    _, rows = found(seen.outputs(3))
    for name, row in rows.items():
        if row["unavailable"]:
            assert row["unavailable"].startswith("because "), name
            assert row["unlearned"] is None
            continue
        low, high = row["interval"]
        assert low - 1e-9 <= row["unlearned"] <= high + 1e-9, name
        assert row["n"] > 0
        assert row["gap"] == pytest.approx(row["unlearned"] - row["gold"], abs=1e-9)


def test_without_gold_nothing_is_made_up():
    report, rows = found(seen.outputs(3), golds=())
    assert report["verdict"]["name"] == "Inconclusive"
    assert all(r["gold"] is None and r["gap"] is None for r in rows.values())
    assert rows["kl_forget"]["unavailable"] == "because there is no gold model to compare with"


def test_an_extra_tap_is_compared_with_the_last_one():
    report, _ = found(seen.outputs(0, transform=True))
    entries = [e for e in report["depth"] if e["name"] == "probe_linear"]
    assert [e["tap"] for e in entries] == [*seen.TAPS, "transform"]
    assert entries[-1]["original"] == entries[-2]["original"]


def test_a_metric_that_cannot_be_read_does_not_hide_the_others():
    broken = seen.outputs(3)
    features = {
        name: {tap: torch.full_like(z, torch.nan) for tap, z in taps.items()}
        for name, taps in broken.features.items()
    }
    _, rows = found(dataclasses.replace(broken, features=features))
    assert "finite" in rows["probe_linear"]["unavailable"]
    assert rows["forget_accuracy_test"]["unavailable"] is None


def test_gold_against_itself_has_no_gap():
    gold = METRICS["probe_linear"]().measure(seen.outputs(7), None, "penultimate", 0)
    assert gap_of(gold, [gold], 0) == (0, 0, 0)


def test_gaps_are_paired_sample_by_sample():
    half = torch.tensor([0.0, 1.0] * 50)
    mine = Measured(0.5, 0.4, 0.6, 100, {"all": half})
    assert gap_of(mine, [Measured(0.5, 0.4, 0.6, 100, {"all": half})], 0)[1:] == (0, 0)
    other = Measured(0.5, 0.4, 0.6, 100, {"all": 1 - half})
    assert gap_of(mine, [other], 0)[2] > 0.1


def test_the_report_is_json_and_the_same_twice():
    first, _ = found(seen.outputs(3))
    second, _ = found(seen.outputs(3))
    assert json.dumps(first, sort_keys=True) == json.dumps(second, sort_keys=True)


def test_the_audit_never_sees_a_method():
    source = Path(cka_file.__file__).parents[1] / "audit.py"
    assert "unlearners" not in source.read_text()
