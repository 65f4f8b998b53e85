"""Charts say what the data say, in both themes, and survive what people type."""

import ast
import base64
import json
import re
from pathlib import Path

import numpy as np
import pytest
from drawings import HOSTILE, THEMES, drawn, layout_of, made, traces, usual

from app.charts import MODELS, angle_matrix, flow, pictures, theme
from app.charts.snippet import PICTURES, snippet

ROWS = {
    "angles": 20, "angle_matrix": 10, "arrows": 30, "strength": 3, "depth": 3,
    "confidence": 30, "class_change": 5, "membership": 90,
}  # fmt: skip
"""Rows that the data of `made` have: 10 pairs of 5 classes, 3 models, 20 + 10 scores, ..."""


@pytest.mark.parametrize("colours", THEMES, ids=lambda t: t.name)
def test_every_chart_has_words_and_a_row_for_each_piece_of_data(colours):
    charts = usual(colours)
    for name, chart in charts.items():
        assert chart.alt, name
        assert isinstance(chart.title, str), name
        assert len(chart.table) == ROWS.get(name, len(chart.table)) > 0, name
        assert len({tuple(row) for row in chart.table}) == 1, f"{name}: rows differ in columns"
        json.dumps(chart.table)
    assert all(len(charts[f"map of {m}"].table) == 60 for m in MODELS)


def test_flow_counts_every_image_once():
    table_ = pictures.where_to(made(), theme.LIGHT).table
    assert [sum(row[f"{m} (images)"] for row in table_) for m in MODELS] == [10, 10, 10]


def test_flow_of_many_classes_tells_right_from_wrong_and_none():
    y = np.arange(8)
    pred = {"unlearned": np.array([0, 1, 2, 3, 4, 0, 0, -1])}
    chart = flow.draw(y, pred, [str(c) for c in y], theme.LIGHT)
    assert [row["unlearned (images)"] for row in chart.table] == [5, 2, 1]


@pytest.mark.parametrize("colours", THEMES, ids=lambda t: t.name)
def test_markup_in_names_reaches_no_picture(colours):
    run = made()
    strip = pictures.readings(run, colours)
    shown = {name: chart.figure.to_json() for name, chart in usual(colours).items()}
    inner = [base64.b64decode(b).decode() for b in re.findall(r"base64,([^\"]+)", strip.html)]
    shown |= {"html": strip.html, "svg": strip.svg, "inner": "".join(inner)}
    # Plotly's JSON writes < as \\u003c; it is undone, or the test would pass whatever is drawn.
    for name, picture in shown.items():
        plain = picture.replace("\\u003c", "<").replace("\\u003e", ">")
        assert HOSTILE[:10] not in plain, name
    assert "&lt;img" in strip.html
    assert "&lt;img" in shown["class_change"].replace("\\u0026", "&")


def test_identical_data_draw_identical_figures():
    first, second = usual(theme.DARK), drawn(made(), theme.DARK)
    assert all(first[n].figure.to_json() == second[n].figure.to_json() for n in first)


def test_charts_without_gold_are_drawn_without_gold():
    for name, chart in drawn(made(("original", "unlearned")), theme.LIGHT).items():
        if name != "depth":  # whose columns are those of the report
            assert not any("gold" in column for column in chart.table[0]), name


def test_angle_matrices_of_many_classes_are_drawn_without_names():
    chart = angle_matrix.draw({"original": np.full((70, 70), 90.0)}, ["c"] * 70, theme.LIGHT)
    assert layout_of(chart).xaxis.ticktext is None
    assert [t.type for t in traces(chart)] == ["heatmap"]


def test_scenes_keep_their_camera():
    layout = layout_of(pictures.arrows(made(), theme.LIGHT))
    assert {layout.uirevision, layout.scene.uirevision, layout.scene3.uirevision} == {"kept"}
    assert layout.scene.xaxis.range == layout.scene2.xaxis.range == layout.scene3.zaxis.range


def test_taps_that_only_the_unlearned_model_has_stand_at_the_end():
    chart = pictures.along_depth(made(), theme.LIGHT)
    assert layout_of(chart).xaxis.categoryarray == ("stem", "penultimate", "transform")


def test_the_headline_of_depth_counts_only_what_lies_above_all_golds():
    run = made()
    assert "3 of 3 taps" in pictures.along_depth(run, theme.LIGHT).title
    for entry in run.report["depth"]:
        entry["interval"] = [0.6, 0.7]  # reaches into the golds' range
    assert pictures.along_depth(run, theme.LIGHT).title.startswith("No probe")


def test_strip_shows_marks_inside_the_axis_and_reasons_for_what_is_missing():
    strip = pictures.readings(made(), theme.LIGHT)
    places = [float(x) for x in re.findall(r'<svg x="([\d.]+)%"', strip.svg)]
    assert len(places) == 3
    assert all(0 <= place <= 100 for place in places)
    assert "not available, because" in strip.html
    # Streamlit's st.html drops inline SVG.
    assert "<svg" not in strip.html
    assert strip.html.count("data:image/svg+xml") == 1
    assert len(strip.table) == 2


@pytest.mark.parametrize("name", [n for n in PICTURES if n != "attention"])
def test_the_python_beside_a_picture_runs(name, monkeypatch, tmp_path):
    from core.runs import Runs

    run, folder = made(), Runs().root / "runs" / "abc123"
    folder.mkdir(parents=True)
    (folder / "report.json").write_text(json.dumps(run.report))
    for file, arrays in run.files.items():
        np.savez(folder / f"{file}.npz", **arrays)
    monkeypatch.chdir(tmp_path)
    exec(compile(snippet(name, "abc123", theme="dark"), name, "exec"), {})
    assert list(tmp_path.iterdir())


def test_a_hostile_key_stays_a_text_in_the_script():
    script = snippet("depth", '"""\nimport os\n"""', names=["probe_linear"])
    assert not [n for n in ast.walk(ast.parse(script)) if isinstance(n, ast.Import)]


def test_charts_import_no_page_no_torch_no_engine():
    for path in (Path(__file__).parents[1] / "app" / "charts").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            bad = {n.split(".")[0] for n in names} & {"streamlit", "torch", "core", "matplotlib"}
            assert not bad, f"{path.name} imports {bad}"
