"""Compare: one entry a method over its seeds, and gaps to gold as they are."""

import pytest

from core import compare, sweep
from core.compare import Entry, Spread, box, entries, front
from core.recipes import Recipe
from core.records import Record
from core.runs import Runs

LEVEL = "class"


def row(reading: str, unlearned, *, seed=0, tap="last", golds=(0.5, 0.7), **more) -> dict:
    gold = sum(golds) / len(golds) if golds else None
    gap = None if gold is None or unlearned is None else unlearned - gold
    known = {"unlearner": "x", "settings": "", "seed": seed, "key": f"k{seed}", "verdict": "Masked"}
    known |= {"reading": reading, "tap": tap, "unit": "fraction", "unlearned": unlearned}
    known |= {"low": 0.4, "high": 0.9, "gold": gold, "golds": list(golds), "gap": gap}
    return known | {"seconds": 2.0, "failure": None} | more


def run(says=0.0, keeps=0.9, knows=0.6, **more) -> list[dict]:
    return [
        row("forget_accuracy_test", says, golds=(0.0, 0.0), **more),
        row("retain_accuracy_test", keeps, golds=(0.9, 0.92), **more),
        row("probe_linear", knows, **more),
        row("probe_mlp", knows - 0.1, tap="first", **more),
    ]


def test_seeds_of_a_method_are_one_entry_with_their_ends():
    [found] = entries([*run(keeps=0.8), *run(keeps=0.9, seed=1)], LEVEL)
    assert found.keys == {0: "k0", 1: "k1"}
    kept = found.readings["retain_accuracy_test"]
    assert (kept.value, kept.low, kept.high) == pytest.approx((0.85, 0.8, 0.9))
    assert kept.gap == pytest.approx(-0.06)
    assert found.seconds == 2.0


def test_one_seed_has_the_interval_over_samples():
    [found] = entries(run(), LEVEL)
    assert (found.readings["probe_linear"].low, found.readings["probe_linear"].high) == (0.4, 0.9)


def test_other_knobs_are_another_entry():
    found = entries([*run(), *run(settings="lr=0.1")], LEVEL)
    assert [e.name for e in found] == ["x", "x lr=0.1"]


def test_what_is_known_is_the_largest_gap_of_any_probe_at_any_tap():
    rows = [*run(knows=0.65), row("probe_norm", 0.9, tap="first"), row("fisher", 3.0, tap="first")]
    [found] = entries(rows, LEVEL)
    assert found.inside is not None
    assert found.inside.value == pytest.approx(0.9 - 0.6)


def test_a_reading_of_an_inner_tap_is_not_taken_for_the_last_one():
    [found] = entries([*run(), row("probe_linear", 0.99, tap="first")], LEVEL)
    assert found.readings["probe_linear"].value == 0.6


def test_seeds_that_disagree_are_counted():
    [found] = entries([*run(), *run(seed=1, verdict="Erased"), *run(seed=2)], LEVEL)
    assert found.verdict == "Masked 2/3, Erased 1/3"


def test_a_failure_is_told_and_counts_as_no_run():
    failed = {"unlearner": "y", "seed": 0, "failure": "the loss became nan"}
    found = entries([*run(), failed], LEVEL)
    assert found[1].failure == "the loss became nan"
    assert found[1].keys == {}
    assert found[1].inside is None
    assert front(found, LEVEL) == {"x"}


def test_the_box_spans_the_golds_on_each_axis():
    found = box(run(), LEVEL)
    assert found is not None
    assert found.output == (0.0, 0.0)
    assert found.utility == (0.9, 0.92)
    # Two golds at 0.5 and 0.7 lie 0.1 below and above their mean.
    assert found.inside == pytest.approx((-0.1, 0.1))


def test_without_gold_there_is_no_box_and_no_gap():
    rows = [r | {"golds": [], "gold": None, "gap": None} for r in run()]
    assert box(rows, LEVEL) is None
    [found] = entries(rows, LEVEL)
    assert found.inside is None
    assert front([found], LEVEL) == set()


def named(name: str, says: float, keeps: float, knows: float) -> Entry:
    at = {"forget_accuracy_test": says, "retain_accuracy_test": keeps}
    readings = {k: Spread(v, v, v, v if k.startswith("forget") else None) for k, v in at.items()}
    inside = Spread(knows, knows, knows, knows)
    return Entry(name, "", {0: "k"}, ("Masked",), readings, inside, 1.0)


def test_the_front_holds_who_is_beaten_by_none():
    found = [
        named("good", 0.0, 0.9, 0.1),
        named("beaten", 0.0, 0.85, 0.1),
        named("careful", 0.3, 0.95, 0.1),
        named("destroy", 0.0, 0.1, 0.0),
    ]
    assert front(found, LEVEL) == {"good", "careful", "destroy"}
    assert front(found, LEVEL, frozenset({"destroy"})) == {"good", "careful"}


def test_equals_are_both_on_the_front_and_past_gold_is_no_merit():
    found = [named("one", 0.0, 0.9, -0.2), named("two", 0.0, 0.9, 0.0)]
    assert front(found, LEVEL) == {"one", "two"}


def test_images_are_compared_by_the_attack_on_members():
    rows = [
        row("forget_accuracy_train", 0.9, golds=(0.88, 0.9)),
        row("retain_accuracy_test", 0.9, golds=(0.9, 0.9)),
        row("rmia", 0.8),
        row("probe_linear", 0.99),
    ]
    [found] = entries(rows, "instance")
    assert found.inside is not None
    assert found.inside.value == pytest.approx(0.2)
    assert box(rows, "instance") is not None


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Two methods on one target, one of them twice, and one on another target."""
    runs = Runs(tmp_path_factory.mktemp("store"))
    for method, seed in (("do_nothing", 0), ("mask_logits", 0), ("mask_logits", 1)):
        runs.make(asked(unlearner=method, seed=seed))
    runs.make(asked("class:blob B", "do_nothing"))
    return runs


def asked(target="class:blob A", unlearner="pour_p", golds=1, seed=0) -> Recipe:
    return Recipe.parse(dataset="blobs", target=target, unlearner=unlearner, golds=golds, seed=seed)


def test_runs_on_a_target_are_found_whatever_the_method_and_seed(runs):
    found = [Record(r.path).report["recipe"] for r in runs.kept(asked())]
    names = [(r["unlearner"]["name"], r["seed"]) for r in found]
    assert names == [("do_nothing", 0), ("mask_logits", 0), ("mask_logits", 1)]
    assert runs.kept(asked(golds=2)) == []
    assert runs.kept(asked(target="class:blob C")) == []


def test_runs_of_other_code_are_not_compared(runs, monkeypatch):
    from core import codehash

    monkeypatch.setattr(codehash, "digest", lambda roots: "changed")
    assert runs.kept(asked()) == []


def test_a_folder_that_is_no_run_is_passed_over(runs):
    bad = runs.root / "runs" / "broken"
    bad.mkdir()
    (bad / "recipe.json").write_text("{")
    assert len(Runs(runs.root).kept(asked())) == 3


def test_rows_of_runs_become_entries_with_their_numbers(runs):
    rows = [r for record in runs.kept(asked()) for r in sweep.rows(record)]
    by_name = {e.name: e for e in entries(rows, LEVEL)}
    report = runs.find(asked(unlearner="do_nothing")).report
    known = {r["name"]: r for r in report["readings"]}
    entry = by_name["do_nothing"]
    assert entry.readings["aus"].value == known["aus"]["unlearned"]
    probes = [e["gap"] for e in report["depth"] if e["name"] in compare.PROBES]
    assert entry.inside is not None
    assert entry.inside.value == max(probes)
    assert len(by_name["mask_logits"].keys) == 2


def test_the_shipped_sweep_is_read_where_it_fits(tmp_path, runs):
    from core.sweep import Cell, write

    cells = [Cell.of(record) for record in runs.kept(asked())]
    about = {"dataset": "blobs", "model": "", "golds": 1, "targets": ["class:blob A"]}
    (tmp_path / "sweeps" / "blobs").mkdir(parents=True)
    write(tmp_path / "sweeps" / "blobs", cells, about)
    rows = sweep.shipped(asked(), tmp_path)
    fresh = [r for record in runs.kept(asked()) for r in sweep.rows(record)]
    assert entries(rows, LEVEL) == entries(fresh, LEVEL)
    assert sweep.shipped(asked(golds=2), tmp_path) == []
    assert sweep.shipped(asked(target="class:blob B"), tmp_path) == []
