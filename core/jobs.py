"""Jobs: recipes in, progress out; the work is done in processes of its own."""

import hashlib
import shutil
import threading
import uuid
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import filelock

from core import worker
from core.pool import before_exit, plain_main, processes, stop
from core.recipes import Recipe
from core.runs import Runs
from core.store import StoreError
from core.worker import State, Status, Task

__all__ = ("Jobs", "State", "Status")

MOST_FOLDERS = 500
"""Jobs whose status is kept after their end."""


@dataclass(eq=False)
class Job:
    """One piece of work that waits or runs."""

    key: str
    task: Task
    args: tuple[Any, ...]
    urgent: bool
    """Asked for by a person, who waits."""
    group: str = ""
    """What it works towards: data set, model and target."""
    running: bool = False
    again: bool = False
    """Asked for anew after it was cancelled and before it had stopped."""


class Jobs:
    """The queue in front of an executor; one key is worked on once, whoever asks.

    `pool` makes the executor: a pool of processes by default, or that of `dask.distributed`. It
    is called again when the executor breaks.
    """

    def __init__(
        self, runs: Runs, *, workers: int = 1, pool: Callable[[], Executor] | None = None
    ) -> None:
        self.runs = runs
        self.folder = runs.root / "jobs"
        self._workers = workers
        self._make_pool = pool or partial(processes, workers)
        self._pool: Executor | None = None
        self._active: dict[str, Job] = {}
        self._changed = threading.Condition(threading.RLock())
        self._owner = uuid.uuid4().hex
        # Others can tell by this lock whether the one who wrote a status is still there.
        self.folder.mkdir(parents=True, exist_ok=True)
        self._alive = filelock.FileLock(self._mark(self._owner), thread_local=False)
        self._alive.acquire()
        runs.store.sweep()
        self._prune()
        self._closed = False
        self._events: SimpleQueue[tuple[Job, Future[State]] | None] = SimpleQueue()
        threading.Thread(target=self._dispatch, daemon=True).start()
        before_exit(self.close)

    def submit(self, recipe: Recipe) -> str:
        """Have a recipe run; its key, under which the status and then the record are found."""
        key = recipe.key
        if self.runs.record(key) is not None:
            return key
        return self.put(key, worker.run, key, recipe.to_json(), group=group_of(recipe))

    def layout(self, recipe: Recipe, method: str) -> str:
        """Have one map of a run made, after the run itself if need be; the job's key."""
        key = recipe.key
        job, record = f"{key}-{method}", self.runs.record(key)
        if record is not None and record.has(f"layout_{method}"):
            worker.write(self._place(job), Status("done"), self._owner)
            return job
        return self.put(job, worker.layout, key, recipe.to_json(), method, group=group_of(recipe))

    def warm(self, dataset: str, model: str, target: str, golds: int = 3) -> str:
        """Have ready what all runs on a target share; what people ask for goes first.

        Of those that wait only the latest is kept.
        """
        key = _short("warm", dataset, model, target, str(golds))
        with self._changed:
            for job in list(self._active.values()):
                if not (job.urgent or job.running or job.key == key):
                    self.cancel(job.key)
        group = f"{dataset} {model} {target}"
        words = (dataset, model, target, golds)
        return self.put(key, worker.warm, *words, urgent=False, group=group)

    def fetch(self, dataset: str) -> str:
        """Have a data set downloaded; the job's key."""
        return self.put(_short("data", dataset), worker.fetch, dataset)

    def put(self, key: str, task: Task, *args: Any, urgent: bool = True, group: str = "") -> str:
        """Have `task(root, reporter, *args)` done under `key`, unless that is on its way.

        An urgent job puts off others that run, unless they work towards the same group.
        """
        folder = self._place(key)
        with self._changed:
            job = self._active.get(key)
            if job is not None:
                job.urgent = job.urgent or urgent
                job.again = job.again or (folder / "cancel").exists()
                return key
            if urgent:
                self._put_off(group)
            self._enqueue(Job(key, task, args, urgent, group))
        return key

    def status(self, key: str) -> Status | None:
        """Where the job stands; None for a key that nobody asked for."""
        try:
            found = worker.read(self._place(key))
            if key not in self._active and self.runs.record(key) is not None:
                return Status("done")
        except StoreError:
            return None
        if found is None:
            return None
        status, owner = found
        over = status.state not in ("queued", "running") or key in self._active
        if over or self._is_alive(owner):
            return status
        return Status("failed", status.stage, reason="The app was closed before this was done.")

    def cancel(self, key: str) -> None:
        """Stop the job before its next batch; nothing of it is kept."""
        with self._changed:
            job = self._active.get(key)
            if job is None:
                return
            job.again = False
            (self._place(key) / "cancel").touch()
            if not job.running:
                self._end(job, Status("cancelled"))

    def wait(self, key: str, timeout: float | None = None) -> Status | None:
        """The status once the job has ended, or after `timeout` seconds."""
        with self._changed:
            self._changed.wait_for(lambda: key not in self._active, timeout)
        return self.status(key)

    def close(self) -> None:
        """Cancel everything and let the workers go."""
        with self._changed:
            self._closed = True
            for key in list(self._active):
                self.cancel(key)
        self._events.put(None)
        if self._pool is not None:
            stop(self._pool)
        self._alive.release()
        self._mark(self._owner).unlink(missing_ok=True)

    def _put_off(self, group: str) -> None:
        running = [job for job in self._active.values() if job.running]
        for job in running if len(running) >= self._workers else ():
            if not job.urgent and job.group != group:
                job.again = True  # after those who wait
                (self._place(job.key) / "cancel").touch()

    def _enqueue(self, job: Job) -> None:
        folder = self._place(job.key)
        (folder / "cancel").unlink(missing_ok=True)
        worker.write(folder, Status("queued"), self._owner)
        self._active[job.key] = job
        self._events.put(None)

    def _dispatch(self) -> None:
        # One thread alone talks to the executor, and holds no lock meanwhile: an executor calls
        # back from a thread of its own, under a lock of its own.
        while not self._closed or self._active:
            event = self._events.get()
            if event is not None:
                self._finish(*event)
            while (job := self._next()) is not None:
                future = self._start(job)
                future.add_done_callback(partial(self._note, job))

    def _note(self, job: Job, future: "Future[State]") -> None:
        self._events.put((job, future))

    def _next(self) -> Job | None:
        """What to start now, people's jobs first; None while every worker is busy."""
        with self._changed:
            waiting = [job for job in self._active.values() if not job.running]
            busy = len(self._active) - len(waiting)
            if not waiting or busy >= self._workers or self._closed:
                return None
            job = next((job for job in waiting if job.urgent), waiting[0])
            job.running = True
            return job

    def _start(self, job: Job) -> "Future[State]":
        args = (self.runs.root, self._place(job.key), self._owner, job.task, job.args)
        failed: Future[State] = Future()
        failed.set_exception(BrokenExecutor())
        for _ in range(2):
            try:
                self._pool = self._pool or self._make_pool()
                with plain_main():
                    return self._pool.submit(worker.work, *args)
            except BrokenExecutor:  # one of its processes has died
                self._pool = None
            except OSError as error:  # the system gives no more processes
                failed = Future()
                failed.set_exception(error)
                break
        return failed

    def _finish(self, job: Job, future: "Future[State]") -> None:
        status, ended = None, "failed"  # the status is written by the worker, if it lives
        try:
            ended = future.result()
        except (CancelledError, KeyboardInterrupt):
            status, ended = Status("cancelled"), "cancelled"
        except BrokenExecutor:
            status = Status("failed", self._stage(job), reason="The worker was killed.")
            status = Status("cancelled") if self._closed else status
        except Exception as error:
            status = Status("failed", self._stage(job), reason=worker.sentence(error))
        with self._changed:
            self._end(job, status)
            if job.again and ended == "cancelled":
                self._enqueue(Job(job.key, job.task, job.args, job.urgent, job.group))

    def _end(self, job: Job, status: Status | None) -> None:
        if status is not None:
            with suppress(OSError):  # a full disk must not end the dispatcher
                worker.write(self._place(job.key), status, self._owner)
        self._active.pop(job.key, None)
        self._changed.notify_all()

    def _stage(self, job: Job) -> str:
        found = worker.read(self._place(job.key))
        return found[0].stage if found else ""

    def _place(self, key: str) -> Path:
        return self.runs.store.place("jobs", key)

    def _mark(self, owner: str) -> Path:
        return self.folder / f"{owner}.lock"

    def _is_alive(self, owner: str) -> bool:
        mark = self._mark(owner)
        if not mark.exists():
            return False
        try:
            with filelock.FileLock(mark, timeout=0):
                mark.unlink(missing_ok=True)
            return False
        except filelock.Timeout:
            return True

    def _prune(self) -> None:
        with suppress(OSError):
            folders = [f for f in self.folder.iterdir() if f.is_dir()]
            newest = sorted(folders, key=lambda f: f.stat().st_mtime, reverse=True)
            for folder in newest[MOST_FOLDERS:]:
                shutil.rmtree(folder, ignore_errors=True)


def group_of(recipe: Recipe) -> str:
    """What `warm` makes ready for this recipe."""
    return f"{recipe.dataset} {recipe.architecture} {recipe.target}"


def _short(kind: str, *words: str) -> str:
    return f"{kind}-{hashlib.sha256(chr(0).join(words).encode()).hexdigest()[:32]}"
