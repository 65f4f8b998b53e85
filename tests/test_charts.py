"""Charts say what the data say, in both themes, and survive what people type."""

import ast
import base64
import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from app.charts import (
    MODELS,
    angle_matrix,
    flow,
    maps,
    pictures,
    selection,
    theme,
)
from app.charts.snippet import PICTURES, snippet

HOSTILE = "<img src=x onerror=alert(1)>"
CLASSES = ("bag", HOSTILE, "a & b", "=cmd()", "boot")
FORGET = 1
THEMES = list(theme.THEMES.values())


@dataclass
class Run:
    """A run of 60 map points and five classes, one of them with a hostile name."""

    report: dict
    files: dict

    def arrays(self, name):
        return self.files[name]


def made(models=MODELS, seed=0) -> Run:
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(5), 12)
    arrays = {"map/ids": 900 - 7 * np.arange(60), "map/y": y, "map/forget": y == FORGET}
    arrays |= {"y/forget": np.full(20, FORGET), "y/test_forget": np.full(10, FORGET)}
    arrays |= {"y/test_retain": np.repeat([0, 2, 3, 4], 10)}
    for who in models:
        prob = rng.dirichlet(np.ones(5), 60)
        arrays |= {f"map/prob/{who}": prob, f"map/pred/{who}": prob.argmax(1)}
        for kind in ("means", "head"):
            rows = rng.normal(size=(5, 8))
            unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
            arrays[f"angles/{kind}/{who}"] = np.degrees(np.arccos(np.clip(unit @ unit.T, -1, 1)))
            arrays |= {f"geometry/{kind}/{who}": rows, f"geometry/{kind}3/{who}": rows[:, :3]}
        for part in ("forget", "test_forget", "test_retain"):
            arrays[f"logits/{who}/{part}"] = rng.normal(size=(len(arrays[f"y/{part}"]), 5))
    arrays |= {f"strength/{k}_angles": np.full((3, 5, 5), 104.0) for k in ("mean", "head")}
    arrays |= {f"strength/{k}_accuracy": np.array([1.0, 0.5, 0.0]) for k in ("forget", "retain")}
    arrays["strength/values"] = np.array([0, 0.5, 1])
    cams = {f"cam/true/{m}": rng.random((3, 4, 4)) for m in models}
    files = {"figures": arrays, "attention": {"ids": np.array([900, 893, 886]), **cams}}
    files["layout_pca"] = {m: rng.normal(size=(60, 2)) * (1 + i) for i, m in enumerate(models)}
    return Run(report("gold" in models), files)


def reading(name: str, gold: bool, **more) -> dict:
    row = {"name": name, "title": f"Reading {HOSTILE}", "help": "", "unit": "fraction", "n": 50}
    row |= {"low": 0.0, "high": 1.0, "original": 0.9, "unlearned": 0.8, "interval": [0.78, 0.82]}
    row |= {"original_interval": [0.88, 0.92], "unavailable": None, "golds": []}
    row |= {"gold": None, "gold_range": None, "gap": None}
    if gold:
        row |= {"gold": 0.6, "gold_range": [0.59, 0.61], "golds": [0.59, 0.61], "gap": 0.2}
    return row | more


def report(gold: bool) -> dict:
    taps = ["stem", "penultimate"]
    depth = [reading("probe_linear", gold, tap=t) for t in [*taps, "transform"]]
    missing = dict.fromkeys(("original", "unlearned", "gold", "interval", "gold_range", "gap"))
    none = reading("rmia", gold, unavailable=f"because {HOSTILE}") | missing
    return {
        "target": {"title": HOSTILE, "forget_classes": [FORGET]},
        "classes": list(CLASSES),
        "taps": {"original": taps, "unlearned": [*taps, "transform"], "gold": taps},
        "readings": [reading("a", gold), none],
        "depth": depth,
        "recipe": {"dataset": "blobs"},
    }


def drawn(run: Run, colours: theme.Theme) -> dict:
    found = {
        "angles": pictures.angles(run, colours),
        "angle_matrix": pictures.matrix(run, colours),
        "arrows": pictures.arrows(run, colours, share=0.5),
        "strength": pictures.along_strength(run, colours, 0.25),
        "depth": pictures.along_depth(run, colours),
        "flow": pictures.where_to(run, colours),
        "confidence": pictures.confidence(run, colours),
        "class_change": pictures.by_class(run, colours),
        "membership": pictures.attack(run, colours),
    }
    shown = pictures.map_charts(run, colours).charts
    return found | {f"map of {model}": chart for model, chart in shown.items()}


@cache
def usual(colours: theme.Theme) -> dict:
    """Drawing is most of these tests' time; nobody changes what is drawn here."""
    return drawn(made(), colours)


def traces(chart) -> list[Any]:
    return list(chart.figure.data)


def layout_of(chart) -> Any:
    return chart.figure.layout


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


def test_do_nothing_draws_the_same_map_twice():
    run = made()
    same = dict(run.files["layout_pca"])
    same["unlearned"] = same["original"]
    arrays = run.files["figures"]
    arrays["map/pred/unlearned"] = arrays["map/pred/original"]
    for share in (0.0, 0.3, 1.0):
        charts = maps.draw(same, pictures.points(run), theme.LIGHT, share=share).charts
        assert charts["original"].figure == charts["unlearned"].figure or share == 0.3
        np.testing.assert_allclose(  # 0.7 x + 0.3 x is x but for rounding
            traces(charts["original"])[0].x, traces(charts["unlearned"])[0].x, rtol=1e-12
        )


@pytest.mark.parametrize("models", [MODELS, ("original", "unlearned")], ids=len)
def test_models_come_in_one_order_and_maps_share_their_axes(models):
    shown = pictures.map_charts(made(models), theme.LIGHT)
    assert list(shown.charts) == list(models)
    ranges = {(layout_of(c).xaxis.range, layout_of(c).yaxis.range) for c in shown.charts.values()}
    assert len(ranges) == 1
    (x, y), points = ranges.pop(), np.concatenate(list(made(models).files["layout_pca"].values()))
    assert (points >= [x[0], y[0]]).all()
    assert (points <= [x[1], y[1]]).all()
    heads = [a.text for a in layout_of(pictures.matrix(made(models), theme.LIGHT)).annotations]
    assert heads == [theme.NAMES[m] for m in models]


def test_charts_without_gold_are_drawn_without_gold():
    for name, chart in drawn(made(("original", "unlearned")), theme.LIGHT).items():
        if name != "depth":  # whose columns are those of the report
            assert not any("gold" in column for column in chart.table[0]), name


@pytest.mark.parametrize("colour", ["label", "prediction", "state"])
def test_lasso_returns_sample_ids_whatever_the_colouring(colour):
    run = made()
    chart = pictures.map_charts(run, theme.LIGHT, colour=colour).charts["unlearned"]
    want = run.files["figures"]["map/ids"][run.files["figures"]["map/y"] == 2].tolist()
    at = run.files["layout_pca"]["unlearned"][run.files["figures"]["map/y"] == 2]
    spots = {tuple(p) for p in at.tolist()}
    event = {
        "selection": {
            "points": [
                {"customdata": data, "point_index": i}
                for trace in traces(chart)
                for i, (x, y, data) in enumerate(
                    zip(trace.x, trace.y, trace.customdata, strict=True)
                )
                if (x, y) in spots
            ]
        }
    }
    assert sorted(selection.selected_ids(event)) == sorted(want)


@pytest.mark.parametrize(
    "event", [None, {}, {"selection": None}, {"selection": {"points": [{}]}}, 3]
)
def test_a_selection_of_nothing_is_empty(event):
    assert selection.selected_ids(event) == []
    assert selection.selected_cell(event) is None


def test_chosen_ids_stand_out_in_all_three_maps_and_the_forget_class_is_last_and_ringed():
    run = made()
    ids = run.files["figures"]["map/ids"].tolist()
    chosen = [ids[0], ids[13], ids[59]]
    for chart in pictures.map_charts(run, theme.LIGHT, selected=chosen).charts.values():
        lit = [t.customdata[i][0] for t in traces(chart) for i in t.selectedpoints]
        assert sorted(lit) == sorted(chosen)
        last = traces(chart)[-1]
        assert [d[0] for d in last.customdata] == ids[12:24]
        assert last.marker.line.color == theme.FORGET
    legend = pictures.map_charts(run, theme.LIGHT).legend
    assert [item.name for item in legend if item.ringed] == [HOSTILE]


def test_small_maps_are_svg_and_large_ones_webgl():
    for n, kind in ((999, "scatter"), (1000, "scattergl")):
        rows = np.arange(n)
        points = maps.Points(rows, rows % 2, rows < 9, {"original": rows % 2}, ("a", "b"))
        layout = {"original": np.stack([rows, rows], 1).astype(float)}
        chart = maps.draw(layout, points, theme.LIGHT).charts["original"]
        assert {t.type for t in traces(chart)} == {kind}


def test_matrix_cells_can_be_selected_and_share_one_scale():
    drawn_ = traces(pictures.matrix(made(), theme.LIGHT))
    heatmaps = [t for t in drawn_ if t.type == "heatmap"]
    cells = [t for t in drawn_ if t.type == "scatter"]
    assert {t.coloraxis for t in heatmaps} == {"coloraxis"}
    assert all(t.marker.opacity == 0 and len(t.customdata) == 20 for t in cells)
    for x, y, data in zip(cells[0].x, cells[0].y, cells[0].customdata, strict=True):
        event = {"selection": {"points": [{"customdata": data}]}}
        assert selection.selected_cell(event) == (y, x)


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
