"""Details: everything needed to judge this run, to do it again, and to hand it on."""

import json

import streamlit as st

from app.address import Ask
from app.panel import key, note, tab, theme
from core.records import Record
from core.report import html


@tab
def draw(record: Record, ask: Ask) -> None:
    """Recipe, what was read, times, versions, the Python, the report."""
    report = record.report
    with st.container(horizontal=True, key=key("downloads")):
        st.download_button(
            "Report (HTML)", html(report), file_name=f"forgetscope-{record.key[:12]}.html",
            mime="text/html", icon=":material/description:", on_click="ignore", key=key("html"),
        )  # fmt: skip
        st.download_button(
            "Report (JSON)", json.dumps(report, indent=1), on_click="ignore", key=key("json"),
            file_name=f"forgetscope-{record.key[:12]}.json", mime="application/json",
            icon=":material/data_object:",
        )  # fmt: skip
    left, right = st.columns(2, border=True)
    with left:
        st.markdown("**Recipe**")
        recipe = report["recipe"]
        settings = {f"knob: {k}": v for k, v in recipe["unlearner"]["settings"].items()}
        facts = {k: recipe[k] for k in ("dataset", "model", "target", "seed", "golds")}
        pairs(facts | {"unlearner": recipe["unlearner"]["name"]} | settings | {"key": record.key})
        if report["note"]:
            note(report["note"])
    with right:
        st.markdown("**What the method read**")
        pairs({f"{name} set, images": n for name, n in report["data_read"].items()})
        st.markdown("**Seconds**")
        pairs(
            {k: "not measured" if v is None else f"{v:.2f}" for k, v in report["seconds"].items()}
        )
        st.markdown("**Versions**")
        pairs(report["versions"])
    st.markdown("**The same run from Python**")
    st.code(python(ask), language="python")
    st.markdown("**The same run from a terminal**")
    st.code(command(ask), language="bash")
    data = report["data"]
    note(
        f"{ask.dataset.name}: {data['origin']} Licence: {data['licence']}. SHA-256 {data['digest']}"
    )
    note(
        "What this does not prove: other attacks than those shown may still find the class; the"
        " gold models differ from the original in their seed; a reading holds for this data only."
    )


def pairs(values: dict) -> None:
    """Names and values as a small table."""
    colours = theme()
    rows = "".join(
        f'<tr><td style="color:{colours.muted};padding-right:1rem">{cell(k)}</td>'
        f'<td style="overflow-wrap:anywhere">{cell(v)}</td></tr>'
        for k, v in values.items()
    )
    st.html(f'<table class="fs-small">{rows}</table>')


def cell(value: object) -> str:
    """A value as HTML-safe text."""
    from html import escape

    return escape(str(value))


def python(ask: Ask) -> str:
    """The Python that makes this run."""
    return (
        "from core.recipes import Recipe\n"
        "from core.runs import Runs\n\n"
        "recipe = Recipe.parse(\n"
        f"    dataset={ask.dataset.name!r},\n    model={ask.model!r},\n"
        f"    target={str(ask.target)!r},\n"
        f"    unlearner={ask.name!r},\n"
        f"    settings={ {k: str(v) for k, v in changed(ask).items()} },\n"
        f"    seed={ask.seed},\n    golds={ask.golds},\n)\n"
        "record = Runs().make(recipe)\n"
        'print(record.report["verdict"]["name"], record.report["verdict"]["reason"])\n'
    )


def command(ask: Ask) -> str:
    """The command line that makes this run."""
    import shlex

    words = ["forgetscope", "run", "--dataset", ask.dataset.name, "--forget", str(ask.target)]
    words += ["--unlearner", ask.name, "--model", ask.model]
    for knob, value in changed(ask).items():
        words += ["--set", f"{knob}={value}"]
    words += ["--seed", str(ask.seed), "--golds", str(ask.golds)]
    return shlex.join(words)


def changed(ask: Ask) -> dict:
    """Knobs that are not at their defaults."""
    usual = type(ask.unlearner)().settings()
    return {k: v for k, v in ask.unlearner.settings().items() if v != usual[k]}
