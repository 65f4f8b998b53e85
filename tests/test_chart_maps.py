"""Maps share their axes, and what is picked in a picture comes back as ids and cells."""

import numpy as np
import pytest
from drawings import HOSTILE, layout_of, made, traces

from app.charts import MODELS, maps, pictures, selection, theme


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
