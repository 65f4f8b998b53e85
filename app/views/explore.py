"""Explore: has it really forgotten? Before, after, and beside gold."""

from collections.abc import Mapping

import streamlit as st

from app import address, forms, jobs_view, strip
from app.panel import literal, note, theme
from app.tabs import TABS
from core.jobs import Status
from core.records import Record


def page() -> None:
    """The whole page, from its address."""
    ask = address.read(st.query_params)
    queue = jobs_view.jobs()
    wanted, pressed = forms.sidebar(ask)
    if pressed:
        go(wanted)
    recipe = ask.recipe
    key = recipe.key
    record = queue.runs.record(key)
    st.title(f"Has it really forgotten {literal(ask.target.title())}?")
    for notice in ask.notices:
        st.warning(literal(notice), icon=":material/info:")
    status = None if record else jobs_view.running(key)
    if record is not None:
        shown(record, ask, wanted)
    elif status is not None:
        working(key)
    else:
        missing(ask, jobs_view.ended(key))
    with st.sidebar:
        state_line(record)


def go(wanted: address.Ask) -> None:
    """Put what the form asks for into the address, and have it run."""
    words = wanted.words()
    for name in list(st.query_params):
        if (name in address.OWN or name.startswith(address.KNOB)) and name not in words:
            del st.query_params[name]
    st.query_params.update(words)
    st.session_state.form_from = words
    jobs_view.submit(wanted.recipe)
    st.rerun()


def shown(record: Record, ask: address.Ask, wanted: address.Ask) -> None:
    """A finished run: verdict, strip, tabs."""
    if wanted.words() != ask.words():
        note("The form has changed; press Run to see it. Shown is still the run in the address.")
    strip.verdict(record)
    strip.readings(record)
    opened = st.tabs(list(TABS), key="tab", on_change="rerun", bind="query-params")
    for tab, draw in zip(opened, TABS.values(), strict=True):
        if tab.open:
            with tab:
                draw(record, ask)
    jobs_view.warm(wanted.recipe)


def working(key: str) -> None:
    """A run on its way."""
    note("Nothing of this page waits for it: change the form, or look at another run meanwhile.")
    jobs_view.follow(key, "run")


def missing(ask: address.Ask, status: Status | None) -> None:
    """A run that nobody has made here, or that came to nothing."""
    if status is not None and status.state == "failed":
        st.error(f"This run failed: {literal(status.reason)}", icon=":material/error:")
        next_step = "Change what caused it in the form, or run it again."
    elif status is not None:
        st.info("This run was cancelled; nothing of it was kept.", icon=":material/cancel:")
        next_step = "Run it again, or change the form."
    else:
        st.info("This run has not been made here yet.", icon=":material/hourglass_empty:")
        next_step = "Its result is kept, so that the next look is instant."
    note(next_step)
    if st.button("Run it now", key="run-missing", type="primary"):
        go(ask)


def state_line(record: Record | None) -> None:
    """What the shown run took, under the button."""
    if record is None:
        return
    seconds: Mapping[str, float] = record.report["seconds"]
    took = seconds["unlearner"]
    whole = seconds.get("retrain")
    share = f" · {100 * took / whole:.1f} % of retraining" if whole else ""
    st.html(
        f'<div class="fs-small" style="color:{theme().muted}">Shown: done in {took:.1f} s{share}'
        f" · key {record.key[:6]}</div>"
    )


page()
