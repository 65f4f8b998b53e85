"""Predictions: where the forget images go, how surely, at what cost, and who can tell."""

import streamlit as st

from app.address import Ask
from app.charts import membership, pictures
from app.charts.selection import selected_cell
from app.panel import chart, key, note, tab, theme
from app.pictures import thumbnails
from core.records import Record

MOST = 40
"""Most images shown for a picked bar."""


@tab
def draw(record: Record, ask: Ask) -> None:
    """Flow, confidence, accuracy by class, membership."""
    event = chart(
        pictures.where_to(record, theme()),
        "flow",
        record.key,
        select=("points",),
        about="Predicted classes of the images to be forgotten. Click a segment to see its images.",
    )
    images(record, ask, selected_cell(event))
    chart(
        pictures.confidence(record, theme()),
        "confidence",
        record.key,
        about="How sure the models are on the images to be forgotten.",
    )
    chart(
        pictures.by_class(record, theme()),
        "class_change",
        record.key,
        about="Test accuracy of each class against the original's, with 95 % intervals.",
    )
    attack(record)


def images(record: Record, ask: Ask, cell: tuple[int, int] | None) -> None:
    """The images behind a picked segment of the unlearned model's bar."""
    if cell is None:
        return
    true, predicted = cell
    arrays = record.arrays("figures")
    part = pictures.looked_at(arrays)
    said = pictures.answers(arrays[f"logits/unlearned/{part}"])
    mine = said == predicted
    if true >= 0:
        mine &= arrays[f"y/{part}"] == true
    ids = arrays[f"ids/{part}"][mine].tolist()
    note(
        f"{len(ids)} images that the unlearned model answers so"
        + (f", {MOST} shown" * (len(ids) > MOST))
    )
    st.html(thumbnails(ask.dataset, ids[:MOST], 44))


def attack(record: Record) -> None:
    """The membership attack at a threshold that can be dragged."""
    scored = pictures.attack_scores(record)
    low, high = membership.limits(scored)
    best = membership.best_threshold(*scored["original"])
    threshold = st.slider(
        "Threshold of the membership attack", low, high, float(best), 0.1,
        key=key(f"threshold-{record.key[:12]}"),
        help="The attack says 'was trained on' at this log-odds of the true class or more. It"
        " starts where it does best on the original.",
    )  # fmt: skip
    chart(
        pictures.attack(record, theme(), threshold),
        "membership",
        record.key,
        about="Images to be forgotten that were trained on, against unseen ones. The target is"
        " gold's value; 50 % is a guess.",
        threshold=threshold,
    )
