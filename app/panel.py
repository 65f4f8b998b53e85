"""Panel: a chart with its title, and behind one button its table, files and Python."""

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from functools import wraps
from html import escape
from typing import Any

import streamlit as st

from app.charts import Chart
from app.charts.snippet import snippet
from app.charts.table import csv
from app.charts.theme import Theme

_side: ContextVar[str] = ContextVar("side", default="")
"""Which of two runs on one page is being drawn; empty where there is one."""


def tab(draw: Callable[..., None]) -> Callable[..., None]:
    """`draw(record, ask)` as a fragment, whose widgets `key` names after `ask.side`."""

    @st.fragment
    @wraps(draw)
    def sided(record: Any, ask: Any) -> None:
        token = _side.set(ask.side)
        try:
            draw(record, ask)
        finally:
            _side.reset(token)

    return sided


def key(name: str) -> str:
    """The key of a widget in a tab: two runs on one page have widgets of their own."""
    side = _side.get()
    return f"{name}-{side}" if side else name


def theme() -> Theme:
    """The theme that this visitor sees."""
    return st.session_state.theme


def chart(
    drawn: Chart,
    name: str,
    run: str = "",
    *,
    code: str = "",
    select: Sequence[str] = (),
    about: str = "",
    widget: str = "",
    **options: Any,
) -> Any:
    """Draw `drawn`, named `name` in `app.charts.snippet`; what was selected.

    It is of the run with the key `run`, or made by the Python in `code`. `about` stands under the
    chart's own title; `widget` tells two charts of one name apart; `options` are those with which
    the picture was drawn.
    """
    widget = widget or name
    with st.container(horizontal=True, vertical_alignment="center", gap="small", wrap=False):
        title = drawn.title or about
        st.markdown(f"**{literal(title)}**" if title else "", width="stretch")
        more(drawn, widget, code or snippet(name, run, theme=theme().name, **options))
    if drawn.title and about:
        st.caption(about)
    return figure(drawn, widget, select=select)


def figure(drawn: Chart, widget: str, *, select: Sequence[str] = ()) -> Any:
    """The figure alone; what was selected in it."""
    image = {"format": "svg", "filename": f"forgetscope-{widget}"}
    selecting: dict[str, Any] = {}
    if select:
        selecting = {"on_select": "rerun", "selection_mode": tuple(select)}
    return st.plotly_chart(
        drawn.figure,
        theme=None,
        key=key(f"chart-{widget}"),
        alt=drawn.alt,
        config={"displaylogo": False, "toImageButtonOptions": image, "scrollZoom": False},
        **selecting,
    )


def more(drawn: Chart, widget: str, code: str) -> None:
    """The button that opens a chart's table, files and Python."""
    with st.popover(
        "", icon=":material/more_horiz:", help="Table, files and Python", type="tertiary"
    ):
        st.caption("The picture's menu (top right of it) saves it as SVG.")
        st.download_button(
            "Numbers as CSV",
            lambda: csv(drawn.table),
            file_name=f"forgetscope-{widget}.csv",
            mime="text/csv",
            icon=":material/download:",
            key=key(f"csv-{widget}"),
            on_click="ignore",
        )
        if st.toggle("Show the table", key=key(f"table-{widget}")):
            st.dataframe(drawn.table, hide_index=True, key=key(f"rows-{widget}"), height=260)
        if st.toggle("Show the Python", key=key(f"code-{widget}")):
            st.code(code, language="python")


def literal(text: str) -> str:
    """`text` so that Markdown shows it as it is."""
    return "".join(f"\\{c}" if c in "\\`*_{}[]()#+-.!|~$<>:" else c for c in text)


def note(text: str) -> None:
    """A muted line of HTML-safe plain text."""
    st.html(f'<div class="fs-small" style="color:{theme().muted}">{escape(text)}</div>')
