"""The command line: what it prints, what it writes, and how it says no."""

import html.parser
import json
import os
import sys
from pathlib import Path

import pytest

from core import cli, report
from core.runs import Runs

BLOBS = ["run", "--dataset", "blobs", "--forget", "class:blob A", "--golds", "1"]
RUN = [*BLOBS, "--unlearner", "mask_logits"]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A store with one finished run."""
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FORGETSCOPE_HOME", str(home))
        patch.setenv("FORGETSCOPE_DEVICE", "cpu")
        files = ["--json", str(home / "a.json"), "--html", str(home / "a.html")]
        assert cli.main([*RUN, *files]) == 0
    return home


@pytest.fixture
def home(made, monkeypatch):
    monkeypatch.setenv("FORGETSCOPE_HOME", str(made))
    return made


def refused(argv: list[str], capsys, code: int = 2) -> str:
    """The one line on stderr."""
    assert cli.main(argv) == code
    told = capsys.readouterr()
    assert told.out == ""
    line = told.err.split("\r")[-1]
    assert line.count("\n") == 1
    return line


def test_a_run_writes_its_readings(home):
    found = json.loads((home / "a.json").read_text())
    assert found["recipe"]["unlearner"]["name"] == "mask_logits"
    assert found["verdict"]["name"]
    assert found["verdict"]["reason"]
    assert found["verdict"]["criteria"]
    row = next(r for r in found["readings"] if r["name"] == "retain_accuracy_test")
    wanted = {"unit", "ideal", "original", "unlearned", "gold", "gap", "interval", "n"}
    assert wanted <= row.keys()
    assert row["unavailable"] is None
    assert 0.9 < row["gold"] <= 1  # blobs are easily told apart
    assert {"key", "seconds", "data_read", "versions"} <= found.keys()


def test_a_second_run_is_found_and_prints_the_same_report(home, capsys, monkeypatch):
    monkeypatch.setattr(Runs, "_make", None)
    assert cli.main(RUN) == 0
    told = capsys.readouterr().out
    assert told == report.text(json.loads((home / "a.json").read_text()))
    assert "Mask logits" in told
    assert "Retained accuracy" in told


class Tags(html.parser.HTMLParser):
    """Tags and addresses of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.addresses: list[str | None] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.addresses += [value for name, value in attrs if name in ("src", "href", "action")]


def test_the_page_stands_alone_without_a_script(home):
    page = Tags((home / "a.html").read_text())
    assert {"h1", "table"} <= page.tags
    assert not page.tags & {"script", "link", "img", "iframe", "object", "form"}
    assert not page.addresses


def test_hostile_words_are_shown_as_they_are(home):
    values = json.loads((home / "a.json").read_text())
    bad = '<img src=x onerror="alert(1)">'
    values["title"] = values["note"] = values["recipe"]["target"] = bad
    values["verdict"]["reason"] = values["readings"][0]["title"] = bad
    values["depth"][0]["tap"] = values["versions"]["torch"] = bad
    values["recipe"]["unlearner"]["settings"] = {bad: bad}
    page = report.html(values)
    assert "img" not in Tags(page).tags
    assert page.count("&lt;img src=x onerror=&quot;alert(1)&quot;&gt;") == 10


def test_a_reading_that_is_not_available_says_why(home):
    values = json.loads((home / "a.json").read_text())
    missing = next(r for r in values["readings"] if r["unavailable"])
    for shown in (report.text(values), report.html(values)):
        assert f"not available, {missing['unavailable']}" in shown


@pytest.mark.parametrize(
    ("what", "fields"),
    [
        ("datasets", {"name", "classes"}),
        ("models", {"name", "title"}),
        (
            "unlearners",
            {"name", "title", "sentence", "levels", "needs", "control", "caveat", "knobs"},
        ),
        ("metrics", {"name", "title", "unit", "ideal", "per_tap"}),
    ],
)
def test_lists_are_for_people_and_for_programs(capsys, what, fields):
    assert cli.main(["list", what, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert all(fields <= row.keys() for row in rows)
    assert cli.main(["list", what]) == 0
    told = capsys.readouterr().out
    assert all(row["name"] in told and row["title"] in told for row in rows)


def test_data_for_tests_is_not_offered(capsys):
    cli.main(["list", "datasets", "--json"])
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert "blobs" not in rows
    assert "Sneaker" in rows["fashion"]["classes"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (["--unlearner", "nope"], "mask_logits"),
        (["--dataset", "nope"], "fashion"),
        (["--model", "nope"], "resnet_mini"),
        (["--forget", "class:nope"], "blob B"),
        (["--forget", "nope"], "class:NAME"),
        (["--forget", "random:4"], "class targets only"),
        (["--set", "nope=1"], "no knob"),
        (["--set", "nope"], "knob=value"),
        (["--unlearner", "finetune", "--set", "lr=9"], "must lie in"),
        (["--unlearner", "finetune", "--set", "lr=1", "--set", "lr=1"], "twice"),
        (["--seed", "-1"], "seed"),
        (["--seed", "x"], "invalid int"),
        (["--golds", "99"], "golds"),
        (["--device", "abacus"], "abacus"),
        (["--dataset", "npz:/nowhere.npz"], "nowhere"),
        (["--json", "/nowhere/a.json"], "/nowhere/a.json cannot be written"),
        (["--html", "/"], "cannot be written"),
        (["--nope"], "unrecognized"),
    ],
    ids=lambda v: " ".join(v) if isinstance(v, list) else "",
)
def test_a_command_that_makes_no_sense_is_one_line_and_2(capsys, monkeypatch, change, words):
    monkeypatch.setattr(Runs, "make", None)
    line = refused([*RUN, *change], capsys)
    assert line.startswith("forgetscope: ")
    assert words in line


@pytest.mark.parametrize("argv", [[], ["nope"], ["list"], ["list", "nope"], ["run"]], ids=str)
def test_a_missing_word_is_one_line_and_2(capsys, argv):
    assert "--help" in refused(argv, capsys)


def test_help_is_no_error(capsys):
    assert cli.main(["run", "--help"]) == 0
    assert "--unlearner" in capsys.readouterr().out


def raises(error: BaseException):
    def make(self, recipe, progress):
        progress("train", 1, 2)
        raise error

    return make


def test_a_failed_run_is_one_line_and_1(capsys, monkeypatch):
    from core.optim import Diverged

    monkeypatch.setattr(Runs, "make", raises(Diverged("the loss became nan at step 3")))
    line = refused(RUN, capsys, 1)
    assert line == "forgetscope: The run diverged: the loss became nan at step 3.\n"
    monkeypatch.setattr(Runs, "make", raises(KeyError("x")))
    assert refused(RUN, capsys, 1) == "forgetscope: KeyError: 'x'\n"


def test_ctrl_c_is_one_line_and_1(capsys, monkeypatch):
    monkeypatch.setattr(Runs, "make", raises(KeyboardInterrupt()))
    assert refused(RUN, capsys, 1) == "forgetscope: stopped\n"


def test_asking_whether_a_file_can_be_written_leaves_it_as_it_was(tmp_path):
    cli.refuse_unwritable(tmp_path / "new")
    assert not (tmp_path / "new").exists()
    (tmp_path / "old").write_text("kept")
    cli.refuse_unwritable(tmp_path / "old")
    assert (tmp_path / "old").read_text() == "kept"


def test_the_app_is_served_to_this_machine_only(monkeypatch, capsys):
    seen: list[list[str]] = []
    monkeypatch.setattr(os, "execve", lambda path, command, env: seen.append(command))
    monkeypatch.setattr("subprocess.call", lambda command, env: seen.append(command) or 0)
    monkeypatch.setattr(Path, "is_file", lambda self: True)
    cli.main(["app", "--port", "8777", "--no-browser"])
    command = seen[0]
    assert command[:4] == [sys.executable, "-m", "app.serve", "run"]
    options = dict(zip(command[5::2], command[6::2], strict=True))
    assert options["--server.address"] == "localhost"
    assert options["--server.port"] == "8777"
    assert options["--server.headless"] == "true"
    assert options["--server.fileWatcherType"] == "none"
    assert "--port" in refused(["app", "--port", "0"], capsys)
