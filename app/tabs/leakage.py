"""Leakage: where along depth the forgotten is still readable."""

from app.address import Ask
from app.charts import pictures
from app.panel import chart, note, tab, theme
from core.records import Record

PROBES = ("probe_linear", "probe_mlp", "probe_norm")
OTHERS = ("cka_depth_original", "cka_depth_gold", "fisher")


@tab
def draw(record: Record, ask: Ask) -> None:
    """Probes, then similarity and separability, along the taps."""
    if record.report["target"]["level"] == "instance":
        note(
            "A probe for single images reads chance in every model, gold too, so nothing is shown"
            " for probes; the membership attack under Predictions is the reading for images."
        )
    else:
        chart(
            pictures.along_depth(record, theme(), PROBES),
            "depth",
            record.key,
            about="Balanced accuracy of a fresh probe on frozen features of test images, forget"
            " class against the rest (Mirage). The target is gold, which never saw the class.",
            names=list(PROBES),
        )
    chart(
        pictures.along_depth(record, theme(), OTHERS),
        "depth",
        record.key,
        about="How alike the features are to the original's and to gold's, and how far the forget"
        " class lies from the rest.",
        widget="depth-others",
        names=list(OTHERS),
    )
