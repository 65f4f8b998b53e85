"""Picker: a click on an image adds it to what is to be forgotten, or takes it away."""

from pathlib import Path

import numpy as np
import pytest
from drawings import HOSTILE, THEMES, layout_of, traces
from streamlit.testing.v1 import AppTest

from app import picker
from app.charts import sheet, theme

MAIN = Path(__file__).parents[1] / "app" / "main.py"


def images(n: int, channels: int) -> np.ndarray:
    """Image i is of the brightness 10 i."""
    return np.broadcast_to(
        (10 * np.arange(n, dtype=np.uint8))[:, None, None, None], (n, 4, 4, channels)
    )


def drawn(n=12, channels=1, chosen=(5,), colours=theme.LIGHT):
    ids = [3 * i for i in range(n)]
    return sheet.draw(images(n, channels), ids, [HOSTILE] * n, set(chosen), colours)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("colours", THEMES, ids=lambda t: t.name)
def test_a_mark_lies_on_the_image_whose_id_it_carries(channels, colours):
    picture, marks = traces(drawn(channels=channels, colours=colours))
    assert np.array(picture.z).shape == (2 * 4, sheet.ACROSS * 4, 3)
    for (sample,), x, y in zip(marks.customdata, marks.x, marks.y, strict=True):
        column, row = ((p - start) / step for p, start, step in (
            (x, picture.x0, picture.dx), (y, picture.y0, picture.dy)
        ))  # fmt: skip
        assert np.array(picture.z)[round(row), round(column), 0] == 10 * (sample // 3)


def test_what_is_chosen_is_ringed_and_told():
    chart = drawn(chosen=(3, 9, 500))
    ringed = [i for i, c in enumerate(traces(chart)[1].marker.line.color) if c == theme.FORGET]
    assert ringed == [1, 3]
    assert chart.title == "2 of these 12 images are chosen"
    assert [row["id"] for row in chart.table if row["chosen"]] == [3, 9]


def test_markup_in_a_class_name_is_shown_literally():
    plain = str(drawn().figure.to_json()).replace("\\u003c", "<").replace("\\u003e", ">")
    assert HOSTILE[:10] not in plain


def test_pictures_cannot_be_zoomed_away():
    layout = layout_of(drawn())
    assert layout.xaxis.fixedrange
    assert layout.dragmode is False


@pytest.mark.parametrize(("text", "ids"), [("3, 17,3", [3, 17]), ("", []), ("a,-1, 4", [4])])
def test_ids_are_read_from_what_people_type(text, ids):
    assert picker.ids_of(text) == ids


def test_use_these_writes_them_into_the_form(monkeypatch):
    monkeypatch.setattr("core.jobs.Jobs.put", lambda self, key, *rest, **options: key)
    app = AppTest.from_file(str(MAIN), default_timeout=120)
    words = {"dataset": "blobs", "forget": "ids:5,3", "unlearner": "delete", "golds": "0"}
    for name, value in words.items():
        app.query_params[name] = value
    app.run()
    app.button(key="form_pick").click().run()
    assert not app.exception
    app.session_state.picker_ids = [9, 3]
    app.button(key="picker-use").click().run()
    assert not app.exception
    assert app.text_input(key="form_ids").value == "3, 9"
