"""The verdict: five words, told apart by their criteria, and not to be fooled by one probe."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core import verdict
from core.metrics import METRICS
from core.verdict import PRIOR, SEED_SD, SIGMAS, check, judge, noise

TAPS = ("stage1", "penultimate")


def row(name, unlearned, golds, *, tap=None, half=0.01, side=None):
    """A reading as the audit writes it, with a gap interval of `half` on each side."""
    gold = float(np.mean(golds)) if golds else None
    gap = None if gold is None else unlearned - gold
    return {
        "name": name,
        "title": name,
        "tap": tap,
        "unlearned": unlearned,
        "gold": gold,
        "golds": list(golds),
        "gap": gap,
        "gap_interval": None if gap is None else [gap - half, gap + half],
        "unavailable": None,
    }


def judged(*, retained=0.9, forget=0.0, probes=None, moved=0.6, golds=3, half=0.01):
    """The verdict on one model; `probes` overrides what a probe reads, by name."""
    n = range(golds)
    readings = [
        row("retain_accuracy_test", retained, [0.9 for _ in n], half=half),
        row("forget_accuracy_test", forget, [0.0 for _ in n], half=half),
        row("forget_accuracy_train", forget, [0.0 for _ in n], half=half),
        row("phi_forget_original", moved, [0.6 for _ in n], half=half),
    ]
    depth = [
        row(name, (probes or {}).get(name, 0.89), [0.88 + 0.01 * i for i in n], tap=tap, half=half)
        for name in verdict.PROBES
        for tap in TAPS
    ]
    return judge(readings, depth, level="class", golds=golds, about="Sneaker")


def test_a_model_like_gold_is_erased():
    assert judged()["name"] == "Erased"


@pytest.mark.parametrize(
    ("name", "faults"),
    [
        ("Collapsed", {"retained": 0.5}),
        ("Retained", {"forget": 0.9}),
        ("Masked", {"probes": {"probe_linear": 0.99}}),
        ("Masked", {"probes": {"probe_mlp": 0.99}}),
        ("Masked", {"probes": {"probe_norm": 0.99}}),
        ("Masked", {"moved": 0.0}),
        ("Inconclusive", {"probes": dict.fromkeys(verdict.PROBES, 0.5)}),
        ("Inconclusive", {"golds": 0}),
        ("Inconclusive", {"half": 0.4}),
    ],
)
def test_each_fault_has_its_word(name, faults):
    assert judged(**faults)["name"] == name


def test_a_judge_that_trusts_a_linear_probe_alone_would_be_fooled(monkeypatch):
    # What a projection does under exact collapse: linear probes see nothing, others do.
    hidden = {"probe_linear": 0.89, "probe_mlp": 0.99, "probe_norm": 0.97}
    assert judged(probes=hidden)["name"] == "Masked"
    monkeypatch.setattr(verdict, "PROBES", ("probe_linear",))
    assert judged(probes=hidden)["name"] == "Erased"


def test_a_leak_at_any_tap_is_enough():
    found = judged()
    readings = [c["checks"] for c in found["criteria"]]
    depth = [
        row(name, 0.99 if (name, tap) == ("probe_norm", "stage1") else 0.89, [0.88, 0.89], tap=tap)
        for name in verdict.PROBES
        for tap in TAPS
    ]
    plain = [
        row("retain_accuracy_test", 0.9, [0.9]),
        row("forget_accuracy_test", 0.0, [0.0]),
        row("forget_accuracy_train", 0.0, [0.0]),
        row("phi_forget_original", 0.6, [0.6]),
    ]
    word = judge(plain, depth, level="class", golds=2)
    assert word["name"] == "Masked"
    assert word["criteria"][2]["worst"]["tap"] == "stage1"
    assert len(readings) == 3


def test_a_reading_that_is_not_available_leaves_the_verdict_open():
    found = row("retain_accuracy_test", 0.9, [])
    assert check(found, 0.05, "below")["holds"] is None


@given(st.floats(-1, 1), st.floats(0, 0.3), st.floats(0.01, 0.3))
def test_a_check_fails_only_where_its_whole_interval_lies_beyond(gap, half, tolerance):
    found = row("x", gap, [0.0], half=half)
    state = check(found, tolerance, "both")["holds"]
    if state is False:
        assert gap - half > tolerance or gap + half < -tolerance
    if abs(gap) + half <= tolerance:
        assert state is True


def test_the_noise_of_gold_is_some_deviations_of_one_more_seed():
    k, golds = 3, [0.80, 0.84, 0.88]
    spread = 2 * 0.04**2  # (k - 1) times the variance of the three
    sd = np.sqrt((PRIOR * SEED_SD**2 + spread) / (PRIOR + k - 1))
    assert noise(row("x", 0.8, golds)) == pytest.approx(SIGMAS * sd * np.sqrt(1 + 1 / k), abs=1e-12)
    assert noise(row("x", 0.8, [0.8])) > noise(row("x", 0.8, [0.8] * 3)) > 0


def test_single_images_are_judged_by_output_and_membership():
    readings = [
        row("retain_accuracy_test", 0.9, [0.9]),
        row("forget_accuracy_train", 0.9, [0.89]),
        row("rmia", 0.5, [0.5]),
        row("rmia_fpr", 0.5, [0.5]),
    ]
    assert judge(readings, [], level="instance", golds=1)["name"] == "Erased"
    readings[1] = row("forget_accuracy_train", 1.0, [0.89])
    assert judge(readings, [], level="instance", golds=1)["name"] == "Retained"
    readings[1], readings[2] = row("forget_accuracy_train", 0.9, [0.89]), row("rmia", 0.8, [0.5])
    assert judge(readings, [], level="instance", golds=1)["name"] == "Masked"


def test_what_is_judged_is_read():
    assert set(verdict.PROBES) <= set(METRICS)
    assert all(METRICS[name].per_tap for name in verdict.PROBES)


def test_a_verdict_is_json():
    assert json.loads(json.dumps(judged()))["criteria"][0]["name"] == "utility"
    assert Path(verdict.__file__).name == "verdict.py"
