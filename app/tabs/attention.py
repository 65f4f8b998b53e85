"""Attention: where each model finds evidence (Grad-CAM), one scale a row."""

import base64
from html import escape

import streamlit as st

from app.address import Ask
from app.charts import heat, pictures
from app.charts.snippet import snippet
from app.charts.text import named
from app.charts.theme import NAMES
from app.panel import key, note, tab, theme
from app.pictures import image, label, thumbnail
from app.tabs.maps import choice
from core.records import Record

TARGETS = {"true": "True label", "predicted": "Each model's answer"}


@tab
def draw(record: Record, ask: Ask) -> None:
    """The grid: rows are images, columns input, original, unlearned, gold."""
    if not record.has("attention"):
        st.info(
            "Not available, because this model has no spatial stage to look at.",
            icon=":material/visibility_off:",
        )
        return
    asked = choice("Evidence for", TARGETS, "evidence")
    rows = pictures.attention(record, lambda sample: image(ask.dataset, sample), asked, size=148)
    st.html(f'<div class="fs-scroll">{table(record, ask, rows, asked)}</div>')
    with st.container(horizontal=True, vertical_alignment="center", key=key("cam-key")):
        bar = base64.b64encode(heat.scale_bar()).decode()
        st.html(
            f'<div class="fs-legend" style="color:{theme().muted}"><span>none'
            f' <img src="data:image/png;base64,{bar}" width="120" height="10" alt="">'
            " the row's most</span></div>"
        )
        with st.popover("Python", type="tertiary", icon=":material/code:"):
            st.code(snippet("attention", record.key, target=asked), language="python")
    note(
        "Grad-CAM (Selvaraju et al. 2017) on the last spatial stage, positive evidence only. A row"
        " has one scale, so its pictures compare; a map without positive evidence is drawn flat."
    )


def table(
    record: Record, ask: Ask, rows: list[tuple[int, dict[str, heat.Overlay]]], asked: str
) -> str:
    """The grid as HTML."""
    colours, arrays = theme(), record.arrays("attention")
    models = list(rows[0][1]) if rows else []
    heads = "".join(f'<th style="color:{colours.text(m)}"><b>{NAMES[m]}</b></th>' for m in models)
    body = "".join(
        line(record, ask, arrays, i, sample, shown, asked) for i, (sample, shown) in enumerate(rows)
    )
    return (
        f'<table class="fs-cam fs-small"><thead><tr><th>Image</th>{heads}</tr></thead>'
        f"<tbody>{body}</tbody></table>"
    )


def line(
    record: Record, ask: Ask, arrays: dict, i: int, sample: int, shown: dict, asked: str
) -> str:
    """One image's row."""
    colours = theme()
    ring = f"outline:3px solid {colours.forget}" if arrays["forget"][i] else ""
    name = escape(label(ask.dataset, sample))
    cells = [f"<td>{thumbnail(ask.dataset, sample, 148, ring)}{name} · {sample}</td>"]
    for model, over in shown.items():
        aim = named(record.report["classes"], int(arrays[f"target/{asked}/{model}"][i]))
        words = "no positive evidence" if over.flat else f"evidence for {aim}"
        cells.append(
            f'<td><img src="{over.uri}" alt="{escape(over.alt, quote=True)}">'
            f'<span style="color:{colours.muted}">{escape(words)}</span></td>'
        )
    return f"<tr>{''.join(cells)}</tr>"
