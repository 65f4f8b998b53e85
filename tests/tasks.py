"""Tasks: what jobs do in these tests, importable by a worker."""

import os
import time
from pathlib import Path

from core import worker
from core.worker import Reporter

LONG = 300
"""Seconds after which a job that should have ended makes its test fail."""


def steps(root: Path, report: Reporter, name: str, count: int, pause: float = 0.0) -> None:
    """A job of `count` batches that says when it began."""
    with (root / f"{name}.began").open("a") as file:
        file.write("x")
    for done in range(count):
        report("train", done, count)
        time.sleep(pause)
    (root / f"{name}.ended").touch()


def until(true, seconds: float = LONG) -> bool:
    """True as soon as `true()` is; False where that takes too long."""
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def say_pid(root: Path, report: Reporter) -> None:
    """A job of 100 seconds whose worker can be found."""
    worker.replace(root / "pid", str(os.getpid()))
    steps(root, report, "pid", 10_000, 0.01)


def deaf(root: Path, report: Reporter) -> None:
    """A job that says where it runs, and then looks at nothing for a long time."""
    worker.replace(root / "pid", str(os.getpid()))
    time.sleep(LONG)
