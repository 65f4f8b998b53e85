"""Worker: what happens in a job's process, and how it is told to those who wait."""

import contextlib
import json
import multiprocessing
import os
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from core.recipes import Recipe, RecipeError
from core.records import Cancelled
from core.runs import Runs

State = Literal["queued", "running", "done", "failed", "cancelled"]

OFTEN = 0.2
"""Seconds between two writes of a status."""
EVEN = 30
"""From so many steps on, those that are done tell how long the others take."""


@dataclass(frozen=True)
class Status:
    """Where a job stands."""

    state: State
    stage: str = ""
    done: int = 0
    of: int = 0
    seconds_left: float | None = None
    """To the end of the job; None while a stage to come has never been measured here."""
    reason: str = ""
    """Why it failed, in one sentence."""
    stage_left: float | None = None
    """Seconds to the end of this stage; None before its first step."""


@dataclass
class Reporter:
    """A `Progress` that writes `status.json`, and sees the file `cancel`."""

    folder: Path
    owner: str = ""
    stage: str = "start"
    began: float = field(default_factory=time.monotonic)
    wrote: float = 0.0
    kind: str = ""
    ahead: tuple[str, ...] = ()
    planned: tuple[str, ...] = ()
    rates: dict[str, float] = field(default_factory=dict)

    def __call__(self, stage: str, done: int, of: int) -> None:
        if (self.folder / "cancel").exists():
            raise Cancelled
        now = time.monotonic()
        if stage != self.stage:
            self._leave(now)
            self.stage, self.began, self.wrote = stage, now, 0.0
            if stage in self.ahead:
                self.ahead = self.ahead[self.ahead.index(stage) + 1 :]
        if now - self.wrote >= OFTEN:
            self.wrote = now
            left = self._stage_left(now, done, of)
            self.write(Status("running", stage, done, of, self._left(left), "", left))

    def expect(self, stages: Sequence[str], kind: str) -> None:
        """The stages to come; measured before, they tell how long this will take."""
        self.ahead = self.planned = tuple(stages)
        self.kind = kind
        with contextlib.suppress(OSError, ValueError):
            self.rates = json.loads(self._rates_file.read_text(encoding="utf-8"))

    def write(self, status: Status) -> None:
        """Replace the status whole."""
        write(self.folder, status, self.owner)

    def finish(self) -> None:
        """Keep what the stages took, for the next job."""
        self._leave(time.monotonic())
        if self.kind:
            replace(self._rates_file, json.dumps(self.rates))

    @property
    def _rates_file(self) -> Path:
        return self.folder.parent / "rates.json"

    def _name(self, stage: str) -> str:
        trained = stage == "original" or stage.startswith("gold")
        return f"{self.kind} {'train' if trained else stage}"

    def _leave(self, now: float) -> None:
        if self.stage in self.planned:  # what was found, not made, tells nothing
            self.rates[self._name(self.stage)] = now - self.began

    def _stage_left(self, now: float, done: int, of: int) -> float | None:
        spent, usual = now - self.began, self.rates.get(self._name(self.stage))
        if usual is not None and (of < EVEN or not done):
            return max(0.0, usual - spent)
        return spent * (of - done) / done if done else None

    def _left(self, here: float | None) -> float | None:
        ahead = [self.rates.get(self._name(stage)) for stage in self.ahead]
        known = [seconds for seconds in (here, *ahead) if seconds is not None]
        return sum(known) if self.kind and len(known) == 1 + len(ahead) else None


Task = Callable[..., Any]
"""Called with (runs, reporter, *args); a function of a module, so that it can be sent."""


def patience() -> None:
    """Threads that wait for one another soon let go of their core; call this before torch loads.

    Idle cores lose a tenth by it, on busy ones a training takes half the time.
    """
    os.environ.setdefault("GOMP_SPINCOUNT", "1000")


def begin(workers: int) -> None:
    """Prepare the process, one of `workers`: its cores, and no life after the app's."""
    patience()
    if workers > 1:
        os.environ["FORGETSCOPE_THREADS"] = str(max(1, (os.cpu_count() or 1) // workers))
    parent = multiprocessing.parent_process()
    if parent is not None:
        # A pool's worker whose app was killed would wait for its next job for ever.
        threading.Thread(target=lambda: (parent.join(), os._exit(1)), daemon=True).start()


@lru_cache(maxsize=1)
def runs_at(root: Path) -> Runs:
    """The same `Runs` for every job of this process: it remembers what it looked at."""
    from core import devices

    devices.settle()
    return Runs(root)


def work(root: Path, folder: Path, owner: str, task: Task, args: Sequence[Any]) -> State:
    """Do one job and write how it ended."""
    report = Reporter(folder, owner)
    try:
        report(report.stage, 0, 1)
        task(root, report, *args)
        ended = Status("done")
    except (Cancelled, KeyboardInterrupt):
        ended = Status("cancelled")
    except Exception as error:
        (folder / "log.txt").write_text(traceback.format_exc(), encoding="utf-8")
        ended = Status("failed", report.stage, reason=sentence(error))
    else:
        with contextlib.suppress(OSError):
            report.finish()
    report.write(ended)
    return ended.state


def sentence(error: BaseException) -> str:
    """Why it failed, for people: our own errors are sentences, others are named."""
    kind, text = type(error), " ".join(str(error).split())
    if kind.__name__ == "Diverged":
        return f"The run diverged: {text.rstrip('.')}."
    if kind.__module__.split(".")[0] == "core" and text:
        return text
    return f"{kind.__name__}: {text}" if text else f"{kind.__name__}."


def run(root: Path, report: Reporter, key: str, values: dict[str, Any]) -> None:
    """Make the run of a recipe."""
    runs, recipe = _prepare(root, report, key, values)
    runs.make(recipe, report)


def layout(root: Path, report: Reporter, key: str, values: dict[str, Any], method: str) -> None:
    """Make one map of a run."""
    runs, recipe = _prepare(root, report, key, values, method)
    runs.layout(recipe, method, report)


def warm(root: Path, report: Reporter, dataset: str, model: str, target: str, golds: int) -> None:
    """Make and look at what all runs on a target share."""
    runs_at(root).warm(dataset, model, target, golds, report)


def fetch(root: Path, report: Reporter, dataset: str) -> None:
    """Have a data set at hand."""
    runs_at(root).fetch(dataset, report)


def _prepare(
    root: Path, report: Reporter, key: str, values: dict[str, Any], method: str = ""
) -> tuple[Runs, Recipe]:
    runs, recipe = runs_at(root), Recipe.from_json(values)
    runs.fetch(recipe.dataset, report)
    if recipe.key != key:
        raise RecipeError("The code or the data has changed since this was asked; ask again.")
    kind = [recipe.dataset, recipe.architecture, values["unlearner"]["name"], method]
    ahead = (*runs.stages(recipe), *(["layout"] if method else []))
    report.expect(ahead, " ".join(filter(None, kind)))
    return runs, recipe


def write(folder: Path, status: Status, owner: str) -> None:
    """Replace a job's status whole."""
    replace(folder / "status.json", json.dumps(asdict(status) | {"owner": owner}))


def read(folder: Path) -> tuple[Status, str] | None:
    """A job's status and owner; None where there is none."""
    try:
        values = json.loads((folder / "status.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    owner = values.pop("owner")
    return Status(**values), owner


def replace(path: Path, text: str) -> None:
    """Write a small file so that a reader sees the old one or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(f".{os.getpid()}-{threading.get_ident()}")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)
