"""Strip: the verdict in one word and one sentence, and the readings behind it."""

from html import escape
from typing import Any

import streamlit as st

from app.charts import dumbbell, pictures
from app.charts.table import csv
from app.charts.text import MINUS, amount, change
from app.panel import theme
from core.records import Record

SHOWN = {
    "class": ("retain_accuracy_test", "forget_accuracy_test", "aus", "rus_r", "probe_linear",
              "probe_mlp", "rmia", "kl_forget"),
    "subclass": ("retain_accuracy_test", "forget_accuracy_test", "rus_r", "probe_linear",
                 "probe_mlp", "rmia", "kl_forget"),
    "instance": ("retain_accuracy_test", "forget_accuracy_train", "rmia", "u_mia", "balance",
                 "structural_collapse", "rus_r", "kl_forget"),
}  # fmt: skip
LABELS = {
    "retain_accuracy_test": "Retained accuracy",
    "forget_accuracy_test": "Forget accuracy",
    "forget_accuracy_train": "Forget accuracy (seen)",
    "aus": "AUS",
    "rus_r": "RUS against gold",
    "probe_linear": "Linear probe",
    "probe_mlp": "Non-linear probe",
    "rmia": "Membership attack",
    "u_mia": "Attack on the loss",
    "balance": "Balance H",
    "structural_collapse": "Structural collapse",
    "kl_forget": "KL to gold, forget",
}
BAD = {"light": "#B3261E", "dark": "#F28B82"}
TONES = {
    "Erased": {"light": "#1B7A47", "dark": "#5BC98C"},
    "Retained": BAD,
    "Collapsed": BAD,
    "Inconclusive": {"light": "#5F6B76", "dark": "#9AA4AF"},
}
"""The verdict's colour by theme; Masked has the unlearned model's."""
MARKS = {True: "✓", False: "✗", None: "?"}


def verdict(record: Record) -> None:
    """The word, the sentence, and how the criteria stand."""
    found: dict[str, Any] = record.report["verdict"]
    colours = theme()
    tone = TONES.get(found["name"], {}).get(colours.name) or colours.text("unlearned")
    states = " &nbsp; ".join(
        f"{escape(c['title'])} <b>{MARKS[c['holds']]}</b>{escape(count(c))}"
        for c in found["criteria"]
    )
    st.html(
        f'<div class="fs-card fs-verdict" role="status" style="background:{colours.panel};'
        f'border:1px solid {colours.grid};border-left:6px solid {tone}">'
        f'<div class="word" style="color:{tone}">{escape(found["name"])}</div>'
        f'<div class="why">{escape(found["reason"])}'
        f'<div class="fs-small" style="color:{colours.muted}">{states}</div></div></div>'
    )


def criteria(found: dict[str, Any]) -> None:
    """The button that unfolds the verdict's checks."""
    with st.popover("Criteria and intervals", type="tertiary", icon=":material/rule:"):
        st.dataframe(lines(found), hide_index=True, key="criteria-table", width=860)
        st.caption(
            "Each reading is judged by its gap to gold. What is allowed is a fixed tolerance plus,"
            " for probes and membership, what the golds' seeds alone would do. A check fails where"
            " the whole 95 % interval of the gap lies beyond that, and stays open where the gap"
            " lies beyond and its interval reaches back, or is wider than what is allowed."
        )


def count(criterion: dict[str, Any]) -> str:
    """How many of a criterion's checks failed."""
    checks = criterion["checks"]
    failed = sum(c["holds"] is False for c in checks)
    return f" ({failed} of {len(checks)} checks)" if failed and len(checks) > 1 else ""


def lines(found: dict[str, Any]) -> list[dict[str, Any]]:
    """The verdict's checks as a table."""
    rows = []
    for criterion in found["criteria"]:
        for c in criterion["checks"]:
            ends = c["interval"]
            rows.append(
                {
                    "criterion": criterion["title"],
                    "reading": c["title"],
                    "place": c["tap"] or "",
                    "unlearned": amount(c["unlearned"], "fraction"),
                    "gold": amount(c["gold"], "fraction"),
                    "gap": change(c["gap"], "fraction"),
                    "95 % interval of the gap": between(ends),
                    "allowed": allowed(c),
                    "holds": {True: "yes", False: "no", None: "open"}[c["holds"]],
                }
            )
    return rows


def between(ends: list[float] | None) -> str:
    """An interval of a gap in points."""
    if ends is None:
        return ""
    return " to ".join(change(e, "fraction").partition("\u202f")[0] for e in ends)


def allowed(check: dict[str, Any]) -> str:
    """A check's tolerance in points, with the side that counts."""
    sign = {"above": "+", "below": MINUS, "both": "±"}[check["side"]]
    return f"{sign}{100 * check['tolerance']:.1f}"


def readings(record: Record) -> None:
    """The dumbbells."""
    level = record.report["target"]["level"]
    known = {r["name"]: r for r in record.report["readings"]}
    drawn = dumbbell.draw([known[name] for name in SHOWN[level]], theme(), labels=LABELS)
    st.html(drawn.html)
    with st.container(horizontal=True, vertical_alignment="center", key="strip-key", wrap=False):
        st.html(legend(), width="stretch")
        criteria(record.report["verdict"])
        with st.popover("All readings", type="tertiary", icon=":material/table_rows:"):
            everything = pictures.readings(record, theme()).table
            st.dataframe(everything, hide_index=True, key="all-readings", height=420)
            st.download_button(
                "CSV", csv(everything), file_name="forgetscope-readings.csv", mime="text/csv",
                key="csv-readings", on_click="ignore",
            )  # fmt: skip
            st.download_button(
                "Strip as SVG", drawn.svg, file_name="forgetscope-readings.svg",
                mime="image/svg+xml", key="svg-readings", on_click="ignore",
            )  # fmt: skip


def legend() -> str:
    """What ring, dot and diamond mean, as HTML (which keeps no inline SVG)."""
    colours = theme()
    ring = f"border:2px solid {colours.edge('original')}"
    diamond = f"background:{colours.mark('gold')};border-radius:1px;transform:rotate(45deg)"
    marks = {
        "original": ring,
        "unlearned": f"background:{colours.mark('unlearned')}",
        "gold": diamond,
    }
    items = "".join(f'<span><i style="{style}"></i>{name}</span>' for name, style in marks.items())
    return (
        f'<div class="fs-legend" style="color:{colours.muted}">{items}'
        "<span>bar: interval, spread of golds</span></div>"
    )
