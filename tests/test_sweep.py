"""Sweep: each run once, every number as in its record, and failures that are told."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from pyarrow import parquet

from core import cli, sweep
from core.jobs import Jobs
from core.registry import UnknownName
from core.runs import Runs
from core.sweep import Cell

TARGETS = ["class:blob A", "random:12"]
METHODS = ["do_nothing", "mask_logits", "pour_p"]


def planned():
    return sweep.plan("blobs", TARGETS, METHODS, [0, 1], golds=1)


def swept(root):
    """All cells of the plan, made or found in the store at `root`."""
    jobs = Jobs(Runs(root), pool=lambda: ThreadPoolExecutor(1))
    ended: list[tuple[int, int]] = []
    recipes, refused = planned()
    try:
        cells = list(sweep.run(recipes, jobs, lambda what, done, of: ended.append((done, of))))
    finally:
        jobs.close()
    assert ended == [(i + 1, len(recipes)) for i in range(len(recipes))]
    return refused + cells


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return tmp_path_factory.mktemp("sweep")


@pytest.fixture(scope="module")
def cells(root):
    return swept(root)


def test_a_method_that_does_not_serve_a_target_is_told_not_run():
    recipes, refused = planned()
    assert {(c.unlearner, c.target) for c in refused} == {
        ("mask_logits", "random:12"),
        ("pour_p", "random:12"),
    }
    assert all(c.failure == "does not serve instance targets" for c in refused)
    assert len(recipes) + len(refused) == len(TARGETS) * len(METHODS) * 2


def test_unknown_names_are_refused_before_anything_runs():
    with pytest.raises(UnknownName):
        sweep.plan("blobs", TARGETS, ["nope"], [0])


def test_every_number_in_the_file_is_the_records(cells, tmp_path):
    sweep.write(tmp_path, cells, {"dataset": "blobs"})
    rows = parquet.read_table(tmp_path / "sweep.parquet").to_pylist()
    known = {c.record.key: c.record.report for c in cells if c.record}
    read = [row for row in rows if row["failure"] is None]
    assert {row["key"] for row in read} == set(known)
    for row in read:
        report = known[row["key"]]
        lines = report["readings"] if row["tap"] == report["taps"]["unlearned"][-1] else (
            [r for r in report["depth"] if r["tap"] == row["tap"]]
        )  # fmt: skip
        reading = next(r for r in lines if r["name"] == row["reading"])
        for name in ("original", "unlearned", "gold", "gap", "n", "unavailable"):
            assert row[name] == reading[name], (row["reading"], name)
    assert len({(r["key"], r["reading"], r["tap"]) for r in read}) == len(read)


def test_a_second_sweep_runs_nothing_and_finds_the_same(cells, root, monkeypatch):
    monkeypatch.setattr(Runs, "make", lambda *a, **k: pytest.fail("it was kept already"))
    again = swept(root)
    assert [(c.unlearner, c.seed, c.record and c.record.key) for c in again] == [
        (c.unlearner, c.seed, c.record and c.record.key) for c in cells
    ]


def test_the_table_has_a_row_a_method_with_mean_and_deviation(cells):
    text = sweep.markdown(cells)
    part = next(p for p in text.split("### ") if p.startswith("class:blob A\n"))
    lines = {line.split(" | ")[0].strip("| "): line for line in part.split("\n")}
    mine = [c.record.report for c in cells if c.record and c.unlearner == "pour_p"]
    assert len(mine) == 2
    accuracy = next(r for r in mine[0]["readings"] if r["name"] == "retain_accuracy_test")
    assert f"{100 * accuracy['unlearned']:.1f} ± 0.0" in lines["`pour_p`"]
    assert f"{100 * accuracy['gold']:.1f}" in lines["*gold*"]
    assert mine[0]["verdict"]["name"] in lines["`pour_p`"]
    assert "does not serve instance targets" in text


def test_a_run_that_failed_keeps_its_reason_and_its_place(cells):
    failed = Cell("class:blob A", "delete", 0, failure="The loss became nan at step 3.")
    text, rows = sweep.markdown([*cells, failed]), sweep.long([failed])
    assert "| `delete` | The loss became nan at step 3. |" in text
    assert rows == [
        {"target": "class:blob A", "unlearner": "delete", "seed": 0, "failure": failed.failure}
    ]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--seeds", "a"], "--seeds takes whole numbers"),
        (["--jobs", "0"], "--jobs takes 1 to 64"),
        (["--unlearners", "nope"], "There is no unlearner"),
        (["--targets", "class:nope"], "nope"),
    ],
)
def test_bad_words_are_refused_in_one_line(words, told, tmp_path, capsys):
    usual = ["--dataset", "blobs", "--targets", "class:blob A", "--out", str(tmp_path / "out")]
    assert cli.main(["sweep", *usual, *words]) == 2
    said = capsys.readouterr()
    assert said.err.count("\n") == 1
    assert told in said.err
    assert not (tmp_path / "out").exists()
