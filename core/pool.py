"""Pool: processes for jobs, which import nothing of the program that starts them."""

import multiprocessing
import sys
import threading
import time
import types
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager

from core import worker

GRACE = 2.0
"""Seconds for which the end of the program waits for a job to stop by itself."""


def processes(workers: int) -> Executor:
    """A pool of fresh processes that share the machine's cores."""
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(workers, context, worker.begin, (workers,))


def stop(executor: Executor) -> None:
    """Let the workers go: when their job has ended if that is soon, else in the middle of it.

    What they write is whole or not there, so nothing is lost.
    """
    # Python 3.14 can do this by itself (`terminate_workers`).
    workers = list((getattr(executor, "_processes", None) or {}).values())
    executor.shutdown(wait=False, cancel_futures=True)
    end = time.monotonic() + GRACE
    for process in workers:
        process.join(max(0.0, end - time.monotonic()))
        if process.is_alive():
            process.terminate()


def before_exit(close: Callable[[], None]) -> None:
    """Call the method at the end of the program, before Python waits for the workers.

    They would finish their jobs first. `atexit` comes too late, and nothing public comes earlier;
    what is registered last is called first, `concurrent.futures` has registered on import.
    """
    method = weakref.WeakMethod(close)

    def end() -> None:
        alive = method()
        if alive is not None:
            alive()

    threading._register_atexit(end)  # pyright: ignore[reportAttributeAccessIssue]


_swap = threading.Lock()


@contextmanager
def plain_main() -> Iterator[None]:
    """Processes that start meanwhile do not import the program that starts them.

    Streamlit puts the page into `__main__`; a spawned process would run it.
    """
    with _swap:
        main = sys.modules["__main__"]
        sys.modules["__main__"] = types.ModuleType("__main__")
        try:
            yield
        finally:
            sys.modules["__main__"] = main
