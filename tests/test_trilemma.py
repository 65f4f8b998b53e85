"""Trilemma: marks where the numbers are, gold's box, and names that nobody can abuse."""

import json

import pytest
from drawings import HOSTILE, THEMES, layout_of, traces

from app.charts import theme, trilemma
from app.charts.trilemma import Gold, Mark

GOLD = Gold((0.0, 0.01), (0.89, 0.91), (-0.02, 0.03))


def around(value: float) -> trilemma.Axis:
    return value, value - 0.01, value + 0.02


def mark(name="m", says=0.0, keeps=0.9, knows=0.1, title="", **more: bool) -> Mark:
    axes = (around(says), around(keeps), around(knows))
    return Mark(name, title or name, "Masked", *axes, **more)


MARKS = [
    mark("a", best=True),
    mark("b", says=0.5, knows=0.15),
    mark("c", keeps=0.2, control=True),
    mark("d", knows=0.0, title=HOSTILE, best=True),
]


def drawn(marks=MARKS, gold: Gold | None = GOLD, colours=theme.LIGHT):
    return trilemma.draw(marks, gold, colours, attack="Strongest probe")


def shown(chart) -> dict[str, list[tuple[float, float]]]:
    found: dict[str, list[tuple[float, float]]] = {}
    for trace in traces(chart):
        if trace.customdata is None:
            continue
        for (name,), x, y in zip(trace.customdata, trace.x, trace.y, strict=True):
            found.setdefault(name, []).append((x, y))
    return found


@pytest.mark.parametrize("colours", THEMES, ids=lambda t: t.name)
def test_each_method_stands_in_both_panels_at_its_numbers(colours):
    spots = shown(drawn(colours=colours))
    assert spots == {m.name: [(m.says[0], m.knows[0]), (m.keeps[0], m.knows[0])] for m in MARKS}


def test_bars_reach_from_end_to_end():
    trace = next(t for t in traces(drawn([MARKS[0]])) if t.customdata is not None)
    assert (trace.error_x.array[0], trace.error_x.arrayminus[0]) == pytest.approx((0.02, 0.01))


def test_the_box_is_gold_and_is_seen_even_where_golds_agree():
    boxes = [s for s in layout_of(drawn()).shapes if s.type == "rect"]
    assert [(b.x0, b.x1) for b in boxes] == [GOLD.says, GOLD.keeps]
    assert {(b.y0, b.y1) for b in boxes} == {GOLD.knows}
    flat = Gold((0.0, 0.0), (0.9, 0.9), (0.0, 0.0))
    [first, _] = [s for s in layout_of(drawn(gold=flat)).shapes if s.type == "rect"]
    assert first.x1 - first.x0 == pytest.approx(trilemma.LEAST)
    assert (first.x1 + first.x0) / 2 == pytest.approx(0.0)


def test_the_headline_names_who_reaches_gold_on_all_three():
    assert drawn().title == f"1 of 3 methods reach gold's box: {HOSTILE}"
    assert drawn(MARKS[:2]).title == "None of 2 methods reaches gold's box on all three axes"
    assert drawn(gold=None).title == ""


@pytest.mark.parametrize("change", [{"says": 0.2}, {"keeps": 0.7}, {"knows": 0.2}])
def test_one_axis_off_is_outside(change):
    assert trilemma.inside(mark(knows=0.0), GOLD)
    assert not trilemma.inside(mark(**{"knows": 0.0} | change), GOLD)


def test_a_window_shows_most_and_counts_the_rest():
    (low, high), left = trilemma.window([0.0, 0.01, 0.02, 0.03, 0.9], [0.05])
    assert low < 0.0 < 0.05 < high < 0.3
    assert left == 1
    assert trilemma.window([0.5], [])[1] == 0


def test_markup_in_names_reaches_no_picture():
    plain = str(drawn().figure.to_json()).replace("\\u003c", "<").replace("\\u003e", ">")
    assert HOSTILE[:10] not in plain


def test_the_table_twin_has_all_marks_and_gold():
    chart = drawn()
    assert [line["method"] for line in chart.table] == ["a", "b", "c", HOSTILE, "gold"]
    json.dumps(chart.table)
    assert chart.alt
