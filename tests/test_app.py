"""The page by its script: what stands on it, in every state, without a browser."""

import json
import shutil
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from app.address import read
from core.jobs import Status
from core.runs import ASSETS, Runs
from core.verdict import PROBES

MAIN = Path(__file__).parents[1] / "app" / "main.py"


def page(**words: str) -> AppTest:
    """The page at an address, run once."""
    app = AppTest.from_file(str(MAIN), default_timeout=120)
    for name, value in words.items():
        app.query_params[name.replace("__", ".")] = value
    return app.run()


def text(app: AppTest) -> str:
    """All that the page says, as one text."""
    kinds = ("title", "markdown", "caption", "warning", "info", "error", "success")
    parts = [str(getattr(e, "value", "")) for kind in kinds for e in app.get(kind)]
    parts += [str(getattr(e, "proto").body) for e in app.get("html")]  # noqa: B009
    return "\n".join(parts)


@pytest.fixture(autouse=True)
def _quiet_queue(monkeypatch):
    """No page of these tests starts a worker."""
    monkeypatch.setattr("core.jobs.Jobs.put", lambda self, key, *rest, **options: key)


def test_the_first_visit_shows_a_finished_run():
    app = page()
    assert not app.exception
    assert app.title[0].value == "Has it really forgotten Sneaker?"
    assert "Masked" in text(app)
    assert "Run" in [b.label for b in app.button]


def test_the_shipped_run_is_the_one_that_this_code_would_make():
    key = read({}).recipe.key
    shipped = [p.name for p in (ASSETS / "runs").iterdir()]
    assert shipped == [key], "the shipped run is stale: run `python assets/scripts/runs.py`"


def test_the_shipped_run_has_every_picture():
    record = Runs().find(read({}).recipe)
    assert record is not None
    for name in ("figures", "attention", "layout_pca", "layout_tsne", "layout_umap"):
        assert record.has(name), name
    depth = {(e["name"], e["tap"]) for e in record.report["depth"]}
    assert {(p, t) for p in PROBES for t in record.report["taps"]["unlearned"]} <= depth


@pytest.mark.parametrize(
    "tab", ["Map", "Geometry", "Attention", "Leakage", "Predictions", "Details"]
)
def test_every_tab_is_drawn_without_an_error(tab):
    app = page(tab=tab)
    assert not app.exception
    assert "not available" not in text(app).lower() or tab == "Details"


def test_nonsense_in_the_address_is_named_and_shown_literally():
    app = page(dataset="<script>alert(1)</script>", forget="class:Nope", seed="x")
    assert not app.exception
    assert len(app.warning) >= 3
    assert app.title[0].value == "Has it really forgotten Sneaker?"


def test_a_run_that_nobody_made_offers_to_make_it():
    app = page(forget="class:Bag", unlearner="destroy")
    assert not app.exception
    assert "not been made" in app.info[0].value
    assert "Run it now" in [b.label for b in app.button]


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (Status("failed", "unlearn", reason="the loss became nan at step 3"), "loss became nan"),
        (Status("cancelled", "gold 1"), "cancelled"),
    ],
)
def test_failed_and_cancelled_runs_say_so(monkeypatch, status, said):
    monkeypatch.setattr("core.jobs.Jobs.status", lambda self, key: status)
    app = page(forget="class:Bag", unlearner="destroy")
    assert not app.exception
    shown = [*app.error, *app.info]
    assert any(said in e.value for e in shown)


def test_a_run_on_its_way_shows_stage_and_cancel(monkeypatch):
    status = Status("running", "unlearn", 3, 10, seconds_left=7)
    monkeypatch.setattr("core.jobs.Jobs.status", lambda self, key: status)
    app = page(forget="class:Bag", unlearner="destroy")
    assert not app.exception
    assert "Cancel" in [b.label for b in app.button]


def test_the_form_follows_the_address():
    app = page(unlearner="delete", forget="class:Bag", knob__lr="0.004")
    assert app.selectbox(key="form_unlearner").value == "delete"
    assert app.selectbox(key="form_class").value == "Bag"
    assert app.number_input(key="form_delete_lr").value == 0.004


def test_run_puts_the_form_into_the_address():
    app = page()
    app.selectbox(key="form_class").set_value("Bag").run()
    app.selectbox(key="form_unlearner").set_value("do_nothing").run()
    app.button(key="run").click().run()
    assert not app.exception
    assert app.query_params["forget"] in ("class:Bag", ["class:Bag"])
    assert app.query_params["unlearner"] in ("do_nothing", ["do_nothing"])


def test_markup_in_class_names_is_shown_literally(tmp_path, monkeypatch):
    key = read({}).recipe.key
    shutil.copytree(ASSETS / "runs" / key, tmp_path / "runs" / key)
    report = tmp_path / "runs" / key / "report.json"
    values = json.loads(report.read_text())
    values["verdict"]["reason"] = "<img src=x onerror=alert(1)>"
    report.write_text(json.dumps(values))
    monkeypatch.setattr("core.runs.ASSETS", tmp_path)
    monkeypatch.setattr("core.runs.Runs.record", lambda self, key: _record(tmp_path, key))
    app = page()
    assert not app.exception
    assert "<img src=x" not in text(app)
    assert "&lt;img src=x" in text(app)


def _record(root: Path, key: str):
    from core.records import Record

    return Record(root / "runs" / key)
