"""Tabs show the right model's numbers, pass on what is chosen, and say why something is missing."""

import dataclasses
import shlex
from html import escape

import numpy as np
import pytest
from drawings import CLASSES, FORGET, Run, made, reading
from streamlit.testing.v1 import AppTest

from app.address import Ask, read
from app.charts import membership, pictures, theme
from app.tabs import attention, details, leakage, predictions
from core import cli, verdict
from core.records import Cancelled

ASK = read({"dataset": "blobs", "forget": "class:blob B", "unlearner": "pour_p"})


@dataclasses.dataclass
class Record(Run):
    """A finished run that lies on no disk."""

    key: str = "abc123"

    def has(self, name):
        return name in self.files


def record(**changes) -> Record:
    run = made()
    run.report["target"]["level"] = "class"
    return Record(run.report | changes, run.files)


def script(tab, run, ask):
    """The page of `shown`, which sees no name of this module."""
    import importlib

    import streamlit as st

    from app.charts import theme

    st.session_state.theme = theme.LIGHT
    importlib.import_module(f"app.tabs.{tab}").draw(run, ask)


def shown(tab: str, run: Record, ask: Ask = ASK, **words: str) -> AppTest:
    """The tab of this run, drawn once."""
    app = AppTest.from_function(script, default_timeout=60, args=(tab, run, ask))
    for name, value in words.items():
        app.query_params[name] = value
    app.run()
    assert not app.exception
    return app


def html(app: AppTest) -> str:
    return "\n".join(str(getattr(e, "proto").body) for e in app.get("html"))  # noqa: B009


@pytest.fixture
def asked(monkeypatch):
    """What the tabs ask of `pictures`: name and arguments after record and theme."""
    calls = []

    def watched(name):
        draw = getattr(pictures, name)

        def call(run, colours, *rest):
            calls.append((name, *rest))
            return draw(run, colours, *rest)

        return call

    for name in ("angles", "arrows", "matrix", "along_strength", "along_depth", "attack"):
        monkeypatch.setattr(pictures, name, watched(name))
    return calls


# Geometry


def collapsed(**changes) -> Record:
    three = {"original": 0.1, "unlearned": 0.2, "gold": 0.3}
    nc1 = reading("nc1", True, title="NC1", unit="") | three
    angle = reading("angle_means", True, title="Angle", unit="degrees") | changes
    return record(readings=[nc1, angle, reading("probe_linear", True)])


def test_collapse_is_told_for_each_model_in_its_unit():
    table = shown("geometry", collapsed()).dataframe[0].value
    assert list(table.columns) == ["reading", "unit", "original", "unlearned", "gold"]
    assert table.iloc[0].tolist() == ["NC1", "", 0.1, 0.2, 0.3]
    assert table.iloc[1].tolist() == ["Angle", "degrees", 0.9, 0.8, 0.6]
    assert len(table) == 2


def test_collapse_that_cannot_be_read_says_why():
    run = collapsed(unlearned=None, unavailable="because the means coincide")
    table = shown("geometry", run).dataframe[0].value
    assert table["not available"].tolist() == ["", "because the means coincide"]


def test_every_picture_of_geometry_has_the_strength_that_was_chosen(asked):
    shown("geometry", record(), strength="0.2", matrix="Head rows")
    assert ("angles", 0.2) in asked
    assert ("arrows", 0.2, True) in asked
    assert ("matrix", "head", 0.2) in asked
    assert ("along_strength", 0.2) in asked


def test_a_method_without_a_projection_has_no_strength(asked):
    run = record()
    for name in [n for n in run.files["figures"] if n.startswith("strength/")]:
        del run.files["figures"][name]
    app = shown("geometry", run)
    assert not app.slider
    assert "no projection" in html(app)
    assert ("angles", None) in asked


# Attention


def test_attention_that_cannot_be_read_says_why():
    run = record()
    del run.files["attention"]
    assert "no spatial stage" in shown("attention", run).info[0].value


@pytest.mark.parametrize("asked_for", ["true", "predicted"])
def test_attention_names_image_class_and_model_of_each_map(asked_for):
    run, cams = record(), {}
    for who, label in (("original", 1), ("unlearned", 0), ("gold", 4)):
        cams |= {f"cam/{aim}/{who}": np.ones((3, 4, 4)) for aim in ("true", "predicted")}
        cams |= {f"target/true/{who}": np.array([1, 2, 0])}
        cams |= {f"target/predicted/{who}": np.full(3, label)}
    cams[f"cam/{asked_for}/unlearned"][0] = 0
    run.files["attention"] |= {"forget": np.array([True, False, False]), **cams}
    page = html(shown("attention", run, evidence=attention.TARGETS[asked_for]))
    heads = [page.index(f"<b>{theme.NAMES[m]}</b>") for m in ("original", "unlearned", "gold")]
    assert heads == sorted(heads)
    first, second, _ = page.split("<tr>")[2:5]
    words = [cell.split("</span>")[0].split(">")[-1] for cell in first.split("<td>")[2:]]
    aims = (1, 4) if asked_for == "predicted" else (1, 1)
    assert words[1] == "no positive evidence"
    assert words[::2] == [f"evidence for {escape(CLASSES[aim])}" for aim in aims]
    assert "outline" in first
    assert "outline" not in second
    assert "· 900" in first


# Leakage


def test_probes_and_likenesses_are_drawn_along_depth(asked):
    shown("leakage", record())
    assert asked == [("along_depth", verdict.PROBES), ("along_depth", leakage.OTHERS)]


def test_single_images_have_no_probes_and_are_told_why(asked):
    run = record()
    run.report["target"]["level"] = "instance"
    app = shown("leakage", run)
    assert asked == [("along_depth", leakage.OTHERS)]
    assert "reads chance in every model" in html(app)


# Predictions


@pytest.mark.parametrize("cell", [(FORGET, 3), (-1, 3), (0, 3)])
def test_a_picked_segment_shows_the_images_that_the_unlearned_model_answers_so(cell, monkeypatch):
    run, said = record(), {}
    arrays = run.files["figures"]
    arrays["ids/test_forget"] = np.arange(1000, 1010)
    for who, label in (("original", 1), ("unlearned", 3), ("gold", 4)):
        arrays[f"logits/{who}/test_forget"] = np.eye(5)[np.full(10, label)]
    arrays["logits/unlearned/test_forget"][7:] = np.eye(5)[2]
    monkeypatch.setattr(predictions, "thumbnails", lambda data, ids, size: said.update(ids=ids))
    monkeypatch.setattr(predictions, "note", lambda text: said.update(note=text))
    monkeypatch.setattr("streamlit.html", lambda text: None)
    predictions.images(run, ASK, cell)  # pyright: ignore[reportArgumentType]
    expected = list(range(1000, 1007)) if cell[0] != 0 else []
    assert said["ids"] == expected
    assert said["note"].startswith(f"{len(expected)} images")


def test_the_attack_starts_where_it_does_best_on_the_original(asked):
    run = record()
    scored = pictures.attack_scores(run)
    best = float(membership.best_threshold(*scored["original"]))
    slider = shown("predictions", run).slider[0]
    assert slider.value == pytest.approx(best)
    assert asked == [("attack", slider.value)]
    assert (slider.min, slider.max) == pytest.approx(membership.limits(scored))


# Details


def explained() -> Record:
    recipe = {"dataset": "blobs", "model": "mlp", "target": "class:blob B", "seed": 4, "golds": 2}
    recipe |= {"unlearner": {"name": "pour_p", "settings": {"strength": 0.5}}}
    return record(
        recipe=recipe, note="It stopped <early>.", data_read={"forget": 12, "retain": 34},
        seconds={"audit": 1.5, "retrain": None}, versions={"torch": "2.9"},
        data={"origin": "Drawn.", "licence": "none", "digest": "d1g35t"},
    )  # fmt: skip


def test_details_tell_recipe_what_was_read_seconds_and_versions(monkeypatch):
    monkeypatch.setattr(details, "html", lambda report: "")
    page = html(shown("details", explained()))
    found = dict(row.split("</td><td")[:2] for row in page.split("<tr><td")[1:])
    cells = {k.split(">")[-1]: v.split("</td>")[0].split(">")[-1] for k, v in found.items()}
    expected = {
        "dataset": "blobs", "model": "mlp", "target": "class:blob B", "seed": "4", "golds": "2",
        "unlearner": "pour_p", "knob: strength": "0.5", "key": "abc123",
        "forget set, images": "12", "retain set, images": "34",
        "audit": "1.50", "retrain": "not measured", "torch": "2.9",
    }  # fmt: skip
    assert {k: v for k, v in cells.items() if k in expected} == expected
    assert "It stopped &lt;early&gt;." in page
    assert "SHA-256 d1g35t" in page


WORDS = {"dataset": "blobs", "forget": "class:blob C", "unlearner": "pour_p", "seed": "4"}
WORDS |= {"golds": "2", "model": "resnet_mini", "knob.strength": "0.5", "knob.logit": "keep"}


def test_the_python_and_the_command_make_the_run_that_is_shown(monkeypatch):
    ask, recipes = read(WORDS), []

    def make(self, recipe, *rest):
        recipes.append(recipe)
        raise Cancelled

    monkeypatch.setattr("core.runs.Runs.make", make)
    with pytest.raises(Cancelled):
        exec(details.python(ask), {})
    program, *words = shlex.split(details.command(ask))
    assert (program, cli.main(words)) == ("forgetscope", 1)
    assert recipes == [ask.recipe, ask.recipe]
    assert details.changed(ask) == {"strength": 0.5, "logit": "keep"}
