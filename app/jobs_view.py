"""Jobs view: the one way from a page to the engine: find, submit, follow, cancel."""

import threading
from collections.abc import Callable

import streamlit as st

from core.jobs import Jobs, Status
from core.recipes import Recipe
from core.records import Record
from core.runs import Runs

STAGES = {
    "data": "Loading the data",
    "original": "Training the original",
    "unlearn": "Unlearning",
    "observe": "Looking at the models",
    "relearn": "Relearning, to see how soon it comes back",
    "audit": "Taking the readings",
    "figures": "Drawing",
    "save": "Saving",
    "layout": "Arranging the map",
    "waiting": "Waiting for the same job elsewhere",
}
PAUSE = 8
"""Seconds for which a page is drawn before the worker prepares for the next run."""
EVERY = 0.4
"""Seconds between two looks at a job."""


@st.cache_resource(show_spinner=False)
def jobs() -> Jobs:
    """The one queue of this server; its worker starts while the first page is drawn."""
    return Jobs(Runs())


def find(recipe: Recipe) -> Record | None:
    """The finished run, if there is one."""
    return jobs().runs.find(recipe)


def submit(recipe: Recipe) -> str:
    """Have it run; the key to follow it by."""
    return jobs().submit(recipe)


def warm(recipe: Recipe) -> None:
    """Have the worker look at what every run on this target shares, once a session and target."""
    asked = (recipe.dataset, recipe.architecture, recipe.target, recipe.golds)
    if st.session_state.get("warmed") != asked:
        st.session_state.warmed = asked
        # Later, for the worker would take the cores with which the first view is drawn.
        later = threading.Timer(PAUSE, jobs().warm, asked)
        later.daemon = True
        later.start()


def running(key: str) -> Status | None:
    """The job's status while it is on its way."""
    status = jobs().status(key)
    return status if status is not None and status.state in ("queued", "running") else None


def ended(key: str) -> Status | None:
    """The status of a job that failed or was cancelled."""
    status = jobs().status(key)
    return status if status is not None and status.state in ("failed", "cancelled") else None


def stage_name(status: Status) -> str:
    """What the job does, in words."""
    if status.state == "queued":
        return "Waiting for the worker"
    kind, _, number = status.stage.partition(" ")
    if kind == "gold":
        return f"Retraining gold model {number}"
    return STAGES.get(status.stage, status.stage.capitalize() or "Starting")


def left(status: Status) -> str:
    """Seconds left, as people say it; empty while nobody knows."""
    if status.seconds_left is None:
        return ""
    seconds = max(1, round(status.seconds_left))
    return f"about {seconds} s left" if seconds < 100 else f"about {round(seconds / 60)} min left"


def follow(key: str, name: str, then: Callable[[], None] | None = None) -> None:
    """Stage, bar, seconds left and Cancel of a job, until it ends; then the page runs anew."""

    @st.fragment(run_every=EVERY)
    def progress() -> None:
        status = running(key)
        if status is None:
            if then is not None:
                then()
            st.rerun(scope="app")
            return
        share = status.done / status.of if status.of else 0.0
        words = " · ".join(filter(None, [stage_name(status), left(status)]))
        with st.container(horizontal=True, vertical_alignment="center", key=f"job-{name}"):
            st.progress(min(1.0, share), text=words)
            if st.button("Cancel", key=f"cancel-{name}"):
                jobs().cancel(key)

    progress()
