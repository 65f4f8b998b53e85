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


def judged(*changed, retained=0.9, forget=0.0, probes=None, moved=0.6, golds=3, half=0.01):
    """The verdict on one model; `probes` overrides what a probe reads, and `changed` rows."""
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
    readings = replaced(readings, changed)
    return judge(readings, depth, level="class", golds=golds, about="Sneaker")


def singles(*changed):
    """The verdict on single images that are forgotten, but for the rows `changed`."""
    readings = [
        row("retain_accuracy_test", 0.9, [0.9]),
        row("forget_accuracy_train", 0.9, [0.89]),
        row("rmia", 0.5, [0.5]),
        row("rmia_fpr", 0.5, [0.5]),
        row("u_mia", 0.5, [0.5]),
    ]
    return judge(replaced(readings, changed), [], level="instance", golds=1, about="5 images")


def replaced(rows, changed):
    by_name = {r["name"]: r for r in changed}
    return [by_name.get(r["name"], r) for r in rows]


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


def test_what_gold_seeds_may_do_is_no_leak():
    # Beyond REPRESENTATION with its whole interval, and within the noise of three golds.
    assert judged(probes=dict.fromkeys(verdict.PROBES, 0.94))["name"] == "Erased"


@pytest.mark.parametrize("part", ["test", "train"])
def test_an_answer_on_seen_or_unseen_images_is_enough(part):
    assert judged(row(f"forget_accuracy_{part}", 0.5, [0.0]))["name"] == "Retained"


def test_what_is_better_than_gold_is_no_fault():
    assert judged(retained=1.0)["name"] == "Erased"
    assert judged(row("forget_accuracy_test", 0.0, [0.3]))["name"] == "Erased"


def test_a_model_that_lost_all_is_collapsed_whatever_it_answers():
    assert judged(retained=0.5, forget=0.9)["name"] == "Collapsed"


@pytest.mark.parametrize(
    ("name", "value"), [("retain_accuracy_test", 0.9), ("forget_accuracy_train", 0.0)]
)
def test_one_open_criterion_leaves_the_verdict_open(name, value):
    found = judged(row(name, value, [value], half=0.4))
    assert found["name"] == "Inconclusive"
    assert f"the interval of {name} is wider than what is allowed" in found["reason"]


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


def test_a_gap_beyond_what_is_allowed_never_holds_however_unsure_it_is():
    """By 8 points of 7, with an interval from 6.5: that is no proof that it has forgotten."""
    found = row("probe_mlp", 0.08, [0.0, 0.0], half=0.015)
    assert check(found, 0.07, "both")["holds"] is None
    assert check(found, 0.07, "below")["holds"] is True


def test_the_noise_of_gold_is_some_deviations_of_one_more_seed():
    k, golds = 3, [0.80, 0.84, 0.88]
    spread = 2 * 0.04**2  # (k - 1) times the variance of the three
    sd = np.sqrt((PRIOR * SEED_SD**2 + spread) / (PRIOR + k - 1))
    assert noise(row("x", 0.8, golds)) == pytest.approx(SIGMAS * sd * np.sqrt(1 + 1 / k), abs=1e-12)
    assert noise(row("x", 0.8, [0.8])) > noise(row("x", 0.8, [0.8] * 3)) > 0


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("Erased", []),
        ("Retained", [row("forget_accuracy_train", 1.0, [0.89])]),
        ("Masked", [row("rmia", 0.8, [0.5])]),
        ("Masked", [row("rmia_fpr", 0.8, [0.5])]),
        ("Masked", [row("u_mia", 0.8, [0.5])]),
        ("Erased", [row("rmia", 0.6, [0.5])]),  # within what gold's own seeds allow
    ],
)
def test_single_images_are_judged_by_output_and_membership(name, changed):
    assert singles(*changed)["name"] == name


def test_single_images_that_answer_worse_than_gold_are_not_erased():
    found = singles(row("forget_accuracy_train", 0.5, [0.89]))
    assert found["criteria"][1]["holds"] is False
    assert found["name"] == "Inconclusive"
    assert found["reason"].startswith("It went past gold, which is damage")


def test_what_is_judged_is_read():
    assert set(verdict.PROBES) <= set(METRICS)
    assert all(METRICS[name].per_tap for name in verdict.PROBES)


# Sentences


def test_the_worst_reading_is_named_with_its_numbers():
    found = judged(probes={"probe_linear": 0.97, "probe_mlp": 0.99})
    assert found["criteria"][2]["worst"]["reading"] == "probe_mlp"
    assert "probe_mlp at stage1 reads 99.0 %, gold 89.0 % (gap +10.0, allowed" in found["reason"]
    assert "its features still know" in found["reason"]


def test_a_probe_is_named_before_a_likeness():
    found = judged(probes={"probe_norm": 0.99}, moved=0.0)
    assert found["criteria"][2]["worst"]["reading"] == "phi_forget_original"
    assert "probe_norm" in found["reason"]


def test_single_images_are_said_to_have_been_seen():
    found = singles(row("rmia", 0.8, [0.5]))
    assert "still tells that it has seen 5 images" in found["reason"]


def test_what_is_missing_is_named():
    assert judged(golds=0)["reason"] == "There is no gold model to compare with."
    lost = row("retain_accuracy_test", 0.9, []) | {"unavailable": "because it is not finite"}
    assert "is not available, because it is not finite" in judged(lost)["reason"]


def test_a_verdict_is_json():
    assert json.loads(json.dumps(judged()))["criteria"][0]["name"] == "utility"
    assert Path(verdict.__file__).name == "verdict.py"
