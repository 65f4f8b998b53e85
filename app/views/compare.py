"""Compare: which method forgets best, at what price? All methods on one target, beside gold."""

from collections.abc import Iterable
from typing import Any

import streamlit as st

from app import address, comparison, forms, jobs_view, strip
from app.charts.selection import picked
from app.panel import chart, literal, note, theme
from app.tabs import TABS
from core import compare
from core.compare import Entry
from core.jobs import Status
from core.recipes import Recipe
from core.registry import describe
from core.unlearners import UNLEARNERS

EVERY = 1.0  # seconds between two looks at the queue
SIDES = ("A", "B")


def page() -> None:
    """The whole page, from its address."""
    ask = address.read(st.query_params)
    methods, seeds, pressed = sidebar(ask)
    st.title(f"Which method forgets {literal(ask.target.title())} best, at what price?")
    for notice in ask.notices:
        st.warning(literal(notice), icon=":material/info:")
    if pressed:
        submit(ask, methods, seeds)
    queue()
    level = ask.target.level
    rows = comparison.rows(jobs_view.jobs().runs, ask)
    found = comparison.order(compare.entries(rows, level))
    st.markdown(literal(comparison.sentence(found, level)))
    if not found:
        nothing()
        return
    best = compare.front(found, level, comparison.CONTROLS)
    picture(ask, found, rows)
    table(ask, found, best)
    side_by_side(ask, found)


def sidebar(ask: address.Ask) -> tuple[list[str], int, bool]:
    """The form: what, what to forget, and which methods to run on it; whether Run was pressed."""
    with st.sidebar:
        words = forms.question(ask)
        forms.head("METHODS")
        level = forms.LEVELS.get(st.session_state.form_kind, "instance")
        served = [n for n, kind in UNLEARNERS.items() if level in kind.levels]
        chosen = st.multiselect(
            "Methods", served, key="compare_methods", label_visibility="collapsed",
            placeholder=f"All {len(served)}", format_func=lambda n: describe(UNLEARNERS[n])[0],
        )  # fmt: skip
        seeds = st.number_input("Seeds", 1, 5, key="compare_seeds", step=1)
        wanted = address.read(words)
        if [words["dataset"], words["forget"], wanted.model] != [
            ask.dataset.name, str(ask.target), ask.model,
        ]:  # fmt: skip
            for notice in wanted.notices:
                st.warning(literal(notice), icon=":material/info:")
            if st.button("Show this target", type="primary", width="stretch", key="compare-show"):
                go(wanted)
            return [], int(seeds), False
        pressed = st.button(
            "Run what is missing", type="primary", width="stretch", key="compare-run",
            help="At their defaults, one after the other, in the background. What has been run"
            " before is not run again.",
        )  # fmt: skip
    return chosen or served, int(seeds), pressed


def go(wanted: address.Ask) -> None:
    """Show another target."""
    for name in ("a", "b", *address.OWN):
        if name in st.query_params:
            del st.query_params[name]
    words = wanted.words()
    st.query_params.update({k: v for k, v in words.items() if k in ("dataset", "forget", "model")})
    st.session_state.form_from = address.read(st.query_params).words()
    st.rerun()


def submit(ask: address.Ask, methods: list[str], seeds: int) -> None:
    """Have all that is missing run, quick or slow, in the order of the list."""
    jobs = jobs_view.jobs()
    wanted = [address.picked(f"{n} seed={s}", ask).recipe for s in range(seeds) for n in methods]
    missing = [recipe for recipe in wanted if jobs.runs.find(recipe) is None]
    st.session_state.compare_jobs = {recipe.key: named(recipe) for recipe in missing}
    for recipe in missing:
        jobs.submit(recipe)
    if not missing:
        st.toast("All of these have been run.")


def named(recipe: Recipe) -> str:
    """A run, for people."""
    seed = f", seed {recipe.seed}" if recipe.seed else ""
    return describe(type(recipe.unlearner))[0] + seed


def queue() -> None:
    """How far the runs are that this visitor asked for; the page goes on meanwhile."""
    asked: dict[str, str] = st.session_state.get("compare_jobs", {})
    if not asked:
        return
    for key, name in asked.items():
        complain(name, jobs_view.ended(key))
    before = waiting(asked)
    if not before:
        return

    @st.fragment(run_every=EVERY)
    def progress() -> None:
        now = waiting(asked)
        if len(now) != len(before):
            st.rerun(scope="app")
        current = next((k for k, s in now.items() if s.state == "running"), next(iter(now)))
        done = len(asked) - len(now)
        stage = jobs_view.stage_name(now[current])
        words = f"{done} of {len(asked)} done · {asked[current]}: {stage}"
        with st.container(horizontal=True, vertical_alignment="center", key="compare-progress"):
            st.progress(done / len(asked), text=literal(words))
            if st.button("Cancel the rest", key="compare-cancel"):
                for key in now:
                    jobs_view.jobs().cancel(key)

    progress()


def complain(name: str, status: Status | None) -> None:
    """Say why a run failed, if it did."""
    if status is not None and status.state == "failed":
        st.warning(literal(f"{name} failed: {status.reason}"), icon=":material/error:")


def waiting(keys: Iterable[str]) -> dict[str, Status]:
    """Those that wait or run, by key."""
    return {key: status for key in keys if (status := jobs_view.running(key))}


def nothing() -> None:
    """Before the first run."""
    st.info(
        "Press Run what is missing: methods appear here one by one as they finish.",
        icon=":material/hourglass_empty:",
    )


def picture(ask: address.Ask, found: list[Entry], rows: list[dict[str, Any]]) -> None:
    """The trilemma; a click opens the run."""
    level = ask.target.level
    if not comparison.marks(found, level, set()):
        note("Where gold is not to be had there is no gap to gold, and no picture of it.")
        return
    drawn = comparison.picture(found, rows, level, theme())
    event = chart(
        drawn, "trilemma", code=comparison.script(ask, theme()), select=("points",),
        about="Each point is a method at its defaults; bars span its seeds, or the 95 % interval of"
        " one. The strongest of all probes at all taps counts. Click a point to open its"
        " run; double-click a panel to see what lies outside.",
    )  # fmt: skip
    chosen = picked(event)
    if chosen:
        opened(ask, next(e for e in found if e.name == chosen[0][0]))


def opened(ask: address.Ask, entry: Entry, seed: int | None = None) -> None:
    """Go to the Explore page with a run of this entry."""
    seed = next(iter(entry.keys), 0) if seed is None else seed
    one = address.picked(f"{entry.name} seed={seed}", ask)
    st.switch_page(st.session_state.explore, query_params=one.words())


def table(ask: address.Ask, found: list[Entry], best: set[str]) -> None:
    """All readings; a chosen row can be opened, or put beside another."""
    level = ask.target.level
    style = comparison.table(found, level, best, theme())
    wide = {"Method": st.column_config.TextColumn(pinned=True, width="medium")}
    event: Any = st.dataframe(
        style, hide_index=True, key="compare-table", on_select="rerun", column_config=wide,
        selection_mode="single-row", height=min(36 * (len(found) + 1) + 4, 640),
    )  # fmt: skip
    note(
        "Value [ends]: least and largest over the seeds, or the 95 % interval of one run. The"
        " darker a cell, the farther from gold, whichever way. ★: on the Pareto front."
    )
    chosen = event.selection.rows
    with st.container(horizontal=True, vertical_alignment="center", key="compare-actions"):
        st.download_button(
            "CSV", lambda: comparison.frame(found, level).to_csv(index=False),
            file_name="forgetscope-compare.csv", mime="text/csv", key="compare-csv",
            on_click="ignore", icon=":material/download:",
        )  # fmt: skip
        if not chosen:
            return
        entry = found[chosen[0]]
        if st.button(f"Open {literal(comparison.title(entry))}", key="compare-open"):
            opened(ask, entry)
        first = comparison.options([entry])[:1]
        for side in SIDES if first else ():
            st.button(
                f"Put it in {side}", key=f"compare-put-{side}", on_click=put, args=(side, first[0])
            )


def put(side: str, text: str) -> None:
    """Choose a run for one side."""
    st.session_state[f"pair-{side}"] = text


def side_by_side(ask: address.Ask, found: list[Entry]) -> None:
    """Any two runs with all tabs, one above the other, so that each keeps the page's width."""
    known = comparison.options(found)
    st.subheader("Two runs side by side")
    texts = []
    for column, side in zip(st.columns(2), SIDES, strict=True):
        with column:
            texts.append(choose(side, known, ask))
    if not all(texts):
        note("Choose a run on both sides to see all tabs for the two.")
        return
    tabs = st.tabs(list(TABS), key="tab", on_change="rerun", bind="query-params")
    for tab, (name, draw) in zip(tabs, TABS.items(), strict=True):
        if tab.open:
            with tab:
                if name == "Map":
                    note("Each run's maps have one system of their own: A's do not fit onto B's.")
                for side, text in zip(SIDES, texts, strict=True):
                    one(address.picked(text, ask, side.lower()), side, draw)


def choose(side: str, known: list[str], ask: address.Ask) -> str:
    """The select box of one side; its choice is in the address."""
    name = side.lower()
    wanted = st.query_params.get(name, "")
    texts = ["", *known]
    state = f"pair-{side}"
    if state not in st.session_state and wanted:
        text = address.picked(wanted, ask).method
        st.session_state[state] = text if text in texts else ""
    if st.session_state.get(state) not in texts:
        st.session_state.pop(state, None)
    text = st.selectbox(
        side, texts, key=state, format_func=lambda t: shown(t) if t else "Choose a run"
    )
    if text:
        st.query_params[name] = text
    elif name in st.query_params:
        del st.query_params[name]
    return text


def shown(text: str) -> str:
    """A run's text, for people."""
    name, _, rest = text.partition(" ")
    kind = UNLEARNERS.get(name)
    return " · ".join(filter(None, [describe(kind)[0] if kind else name, rest]))


def one(ask: address.Ask, side: str, draw: Any) -> None:
    """One of two runs in a tab."""
    record = jobs_view.jobs().runs.record(ask.recipe.key)
    with st.container(border=True, key=f"pair-box-{side}"):
        st.markdown(f"**{side} · {literal(shown(ask.method))}**")
        if record is None:
            note("This run's pictures are not kept here.")
            if st.button("Run it now", key=f"pair-run-{side}"):
                st.session_state.compare_jobs = {ask.recipe.key: named(ask.recipe)}
                jobs_view.submit(ask.recipe)
                st.rerun()
            return
        strip.verdict(record)
        draw(record, ask)


page()
