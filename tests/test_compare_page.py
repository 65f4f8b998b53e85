"""The Compare page by its script: every state, from the first visit to two runs side by side."""

from pathlib import Path

import pytest
from drawings import HOSTILE
from streamlit.testing.v1 import AppTest

from app import address, comparison
from app.charts import theme
from core import compare
from core.recipes import Recipe
from core.runs import Runs

MAIN = Path(__file__).parents[1] / "app" / "main.py"
WORDS = {"dataset": "blobs", "forget": "class:blob A", "golds": "1"}


def page(**words: str) -> AppTest:
    app = AppTest.from_file(str(MAIN), default_timeout=120)
    for name, value in (WORDS | words).items():
        app.query_params[name] = value
    return app.switch_page("views/compare.py").run()


def text(app: AppTest) -> str:
    kinds = ("title", "markdown", "caption", "warning", "info", "error")
    parts = [str(getattr(e, "value", "")) for kind in kinds for e in app.get(kind)]
    parts += [str(getattr(e, "proto").body) for e in app.get("html")]  # noqa: B009
    return "\n".join(parts).replace("\\", "")


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A store with two methods on one target, one with two seeds."""
    root = tmp_path_factory.mktemp("home")
    runs = Runs(root)
    for method, seed in (("do_nothing", 0), ("gradient_ascent", 0), ("gradient_ascent", 1)):
        runs.make(
            Recipe.parse(
                dataset="blobs", target="class:blob A", golds=1, unlearner=method, seed=seed
            )
        )
    return root


@pytest.fixture
def asked(home, monkeypatch):
    """Keys that were put into the queue; no worker starts."""
    put: list[str] = []

    def note(self, key, *rest, **options):
        put.append(key)
        return key

    from app import jobs_view

    monkeypatch.setenv("FORGETSCOPE_HOME", str(home))
    monkeypatch.setattr("core.jobs.Jobs.put", note)
    jobs_view.jobs.clear()
    yield put
    jobs_view.jobs.clear()


def test_it_asks_which_method_forgets_best(asked):
    app = page()
    assert not app.exception
    assert app.title[0].value == "Which method forgets blob A best, at what price?"
    shown = app.dataframe[0].value
    assert list(shown["Method"]) == ["Gradient ascent", "Do nothing"]
    assert list(shown["Seeds"]) == [2, 1]


def test_what_is_kept_is_not_run_again_and_the_rest_is(asked):
    app = page()
    app.multiselect(key="compare_methods").set_value(["do_nothing", "mask_logits"])
    app.button(key="compare-run").click().run()
    assert not app.exception
    missing = Recipe.parse(dataset="blobs", target="class:blob A", golds=1, unlearner="mask_logits")
    assert asked[:1] == [missing.key]


def test_a_target_without_runs_says_what_to_do(asked):
    app = page(forget="class:blob C")
    assert not app.exception
    assert "No method has been run on this target yet." in text(app)
    assert "Run what is missing" in text(app)


def test_two_runs_of_the_address_are_shown_with_a_tab(asked):
    app = page(a="do_nothing", b="gradient_ascent seed=1", tab="Leakage")
    assert not app.exception
    assert app.selectbox(key="pair-A").value == "do_nothing"
    assert app.selectbox(key="pair-B").value == "gradient_ascent seed=1"
    said = text(app)
    assert "A · Do nothing" in said
    assert "B · Gradient ascent · seed=1" in said


@pytest.mark.parametrize("tab", ["Map", "Geometry", "Attention", "Predictions", "Details"])
def test_every_tab_takes_two_runs(asked, tab):
    layouts = {"map-a": "PCA", "map-b": "PCA"}  # others would wait for the queue
    app = page(a="do_nothing", b="gradient_ascent", tab=tab, **layouts)
    assert not app.exception


def test_one_run_may_stand_on_both_sides(asked):
    app = page(a="do_nothing", b="do_nothing", tab="Predictions")
    assert not app.exception


def test_nonsense_for_a_side_chooses_nothing(asked):
    app = page(a=HOSTILE, b="gradient_ascent lr=many")
    assert not app.exception
    assert app.selectbox(key="pair-A").value == ""


def test_a_choice_is_in_the_address(asked):
    app = page()
    app.selectbox(key="pair-A").set_value("do_nothing").run()
    assert app.query_params["a"] in ("do_nothing", ["do_nothing"])


def test_texts_of_runs_are_read_back():
    ask = address.read(WORDS | {"unlearner": "pour_p", "knob.strength": "0.5", "seed": "2"})
    assert ask.method == "pour_p strength=0.5 seed=2"
    again = address.picked(ask.method, address.read(WORDS))
    assert again.recipe == ask.recipe
    assert again.notices == []


def found(home):
    ask = address.read(WORDS)
    rows = comparison.rows(Runs(home), ask)
    return ask, rows, compare.entries(rows, "class")


def test_cells_show_values_with_ends_and_darken_with_the_gap(home):
    _, _, entries = found(home)
    style = comparison.table(entries, "class", set(), theme.LIGHT)
    style._compute()
    html = style.to_html()
    by_name = {e.unlearner: e for e in entries}
    said = by_name["do_nothing"].readings["forget_accuracy_test"]
    assert f"{100 * said.value:.1f}% [{100 * said.low:.1f}, {100 * said.high:.1f}]" in html
    far, near = (comparison.shade(s, theme.LIGHT) for s in (said, compare.Spread(0, 0, 0, 0.0)))
    assert "0.45" in far
    assert ",0)" in near


def test_the_python_of_the_picture_runs(home, monkeypatch, tmp_path):
    ask, _, _ = found(home)
    monkeypatch.setenv("FORGETSCOPE_HOME", str(home))
    monkeypatch.chdir(tmp_path)
    exec(compile(comparison.script(ask, theme.DARK), "script", "exec"), {})
    assert (tmp_path / "trilemma.html").is_file()


def test_the_sentence_counts_methods_and_leaves_controls_out(home):
    _, _, entries = found(home)
    said = comparison.sentence(entries, "class")
    assert said.startswith(("1 of 1 methods answer", "0 of 1 methods answer"))
