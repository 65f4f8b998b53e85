"""Picker: training images to be forgotten, chosen by clicking them."""

import numpy as np
import streamlit as st

from app.charts import sheet
from app.charts.selection import selected_ids
from app.panel import literal, note, theme
from core.data.examples import Dataset

PAGE = 50
"""Images on one sheet."""
MOST = 200
"""Ids that fit in an address."""


def ids_of(text: str) -> list[int]:
    """The whole numbers in `3, 17`, each once, in order."""
    found = [int(part) for part in text.replace(" ", "").split(",") if part.isdigit()]
    return list(dict.fromkeys(found))


@st.dialog("Choose training images", width="large")
def choose(data: Dataset) -> None:
    """A sheet of a class's images; a click adds or takes away; Use these writes the ids."""
    state = st.session_state
    chosen: list[int] = state.setdefault("picker_ids", ids_of(state.get("form_ids", "")))
    left, right = st.columns(2)
    with left:
        name = st.selectbox("Class", data.classes, key="picker_class")
    ids = data.train.ids[data.train.y == data.classes.index(name)].tolist()
    pages = max(1, -(-len(ids) // PAGE))
    with right:
        page = st.number_input(f"Sheet, 1 to {pages}", 1, pages, key=f"picker_page_{name}", step=1)
    shown = ids[(page - 1) * PAGE : page * PAGE]
    toggled = clicked(data, shown, name, chosen)
    if toggled is not None:
        chosen.remove(toggled) if toggled in chosen else chosen.append(toggled)
        state.picker_turn = state.get("picker_turn", 0) + 1  # a fresh chart, with nothing selected
        st.rerun(scope="fragment")
    note(f"{len(chosen)} images chosen, of all classes" + (f"; {MOST} at most" * full(chosen)))
    with st.container(horizontal=True):
        st.button(
            "Use these", type="primary", key="picker-use", on_click=use,
            disabled=not chosen or len(chosen) > MOST,
        )  # fmt: skip
        st.button("Choose none", key="picker-none", on_click=chosen.clear)
    if state.pop("picker_done", False):
        st.rerun()


def full(chosen: list[int]) -> bool:
    """Whether more are chosen than an address takes."""
    return len(chosen) > MOST


def clicked(data: Dataset, ids: list[int], name: str, chosen: list[int]) -> int | None:
    """The sheet; the id of the image that was clicked just now."""
    import torch

    images = np.moveaxis(data.by_id(torch.tensor(ids)).x.numpy(), 1, 3)
    drawn = sheet.draw(images, ids, [name] * len(ids), set(chosen), theme())
    st.markdown(literal(drawn.title))
    event = st.plotly_chart(
        drawn.figure, theme=None, key=f"picker-sheet-{st.session_state.get('picker_turn', 0)}",
        alt=drawn.alt, on_select="rerun", selection_mode="points",
        config={"displayModeBar": False},
    )  # fmt: skip
    return next(iter(selected_ids(event)), None)


def use() -> None:
    """Write what was chosen into the form."""
    state = st.session_state
    state.form_ids = ", ".join(map(str, sorted(state.picker_ids)))
    state.picker_done = True


def opened() -> None:
    """Begin with what the form says."""
    st.session_state.pop("picker_ids", None)
