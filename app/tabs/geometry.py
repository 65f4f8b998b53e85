"""Geometry: angles of class means and head rows, and what projecting one out does to them."""

import streamlit as st

from app.address import Ask
from app.charts import pictures
from app.panel import chart, key, note, tab, theme
from app.tabs.maps import choice
from core.records import Record

COLLAPSE = ("nc1", "nc2_equinorm", "nc2_equiangular", "nc2_max_angle", "nc3", "nc4",
            "angle_means", "angle_head")  # fmt: skip


@tab
def draw(record: Record, ask: Ask) -> None:
    """Histograms, collapse, arrows, strength, matrix."""
    share = strength(record)
    chart(
        pictures.angles(record, theme(), share),
        "angles",
        record.key,
        about="Under neural collapse all classes stand equally far apart: arccos(-1/(C-1)).",
    )
    collapse(record)
    left, right = st.columns([1, 4], vertical_alignment="center")
    with left:
        heads = st.toggle("Head rows too", value=True, key=key("arrows-heads"))
    with right:
        note("Drag to turn. Gold is turned onto the original first, since its axes are its own.")
    chart(pictures.arrows(record, theme(), share, heads), "arrows", record.key, heads=heads)
    kind = choice("Angles between", {"means": "Class means", "head": "Head rows"}, "matrix")
    chart(
        pictures.matrix(record, theme(), kind, share),
        "angle_matrix",
        record.key,
        about="One colour scale for all models; the ideal angle is the neutral colour.",
        kind=kind,
    )


def strength(record: Record) -> float | None:
    """The strength slider and its curves, for a method that is a projection."""
    if pictures.along_strength(record, theme()) is None:
        note("This method is no projection, so there is no strength to turn.")
        return None
    share = st.slider(
        "Strength of the projection", 0.0, 1.0, 1.0, 0.05, key=key("strength"), bind="query-params",
        help="z - s * (z . w) w: at 0 nothing is taken out, at 1 the whole direction is.",
    )  # fmt: skip
    drawn = pictures.along_strength(record, theme(), share)
    if drawn is not None:
        chart(drawn, "strength", record.key, chosen=share)
    return share


def collapse(record: Record) -> None:
    """NC1 to NC4 for the three models, with their targets."""
    rows = []
    for reading in record.report["readings"]:
        if reading["name"] in COLLAPSE:
            cells = {m: reading[m] for m in ("original", "unlearned", "gold")}
            why = reading["unavailable"]
            rows.append(
                {"reading": reading["title"], "unit": reading["unit"]}
                | cells
                | {"not available": why or ""}
            )
    if not any(row["not available"] for row in rows):
        rows = [{k: v for k, v in row.items() if k != "not available"} for row in rows]
    st.markdown("**Neural collapse of the penultimate features**")
    st.dataframe(rows, hide_index=True, key=key("collapse"), column_config=FORMATS)
    note(
        "NC1: spread within classes against spread between them. NC2: equal lengths, equal angles."
        " NC3: class means and head rows agree. NC4: the head answers like the nearest mean."
        " All are 0 under exact collapse (Papyan et al. 2020); judge them by gold."
    )


FORMATS = {
    m: st.column_config.NumberColumn(format="%.3f") for m in ("original", "unlearned", "gold")
}
