"""Devices: where tensors live, and how many threads work on them."""

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

import torch

T = TypeVar("T")
R = TypeVar("R")


class DeviceError(ValueError):
    """A device that this machine does not have; the text is one sentence."""


def choose(name: str | None = None) -> torch.device:
    """The device called `name`, else FORGETSCOPE_DEVICE, else cuda, mps or cpu, whichever is there.

    Raises:
        DeviceError: the device is unknown or absent.
    """
    name = name or os.environ.get("FORGETSCOPE_DEVICE") or _best()
    try:
        device = torch.device(name)
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError):
        raise DeviceError(f"There is no device {name!r} here; cpu always works.") from None
    return device


def cores() -> int:
    """Cores that may be used: FORGETSCOPE_THREADS, else all there are."""
    asked = os.environ.get("FORGETSCOPE_THREADS", "")
    return int(asked) if asked.isdigit() and int(asked) else os.cpu_count() or 1


def settle() -> None:
    """Half of the cores for each step of torch.

    The page and the browser need some too; and steps on few images are faster that way even on
    idle cores (see `one_thread`).
    """
    torch.set_num_threads(max(1, cores() // 2))


@contextmanager
def all_cores() -> Iterator[None]:
    """All cores for each step inside: a third faster for long trainings on large batches."""
    before = torch.get_num_threads()
    torch.set_num_threads(cores())
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def one_thread() -> Iterator[None]:
    """One thread for all linear algebra inside.

    For many small steps: threads that meet after each one gain nothing on idle cores, and on busy
    ones the meeting waits for the system's next time slice (ten times slower was measured).
    """
    import scipy.linalg  # noqa: F401 - a limit reaches only the libraries that are loaded
    from threadpoolctl import threadpool_limits

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1):
            yield
    finally:
        torch.set_num_threads(before)


def spread(work: Callable[[T], R], items: Iterable[T], device: torch.device) -> list[R]:
    """What `work` makes of each item, without gradients; on a CPU, one item a core.

    Cores that share an item have to meet after every layer, see `one_thread`.
    """

    @torch.inference_mode()
    def alone(item: T) -> R:
        return work(item)

    if device.type != "cpu":
        return [alone(item) for item in items]
    with ThreadPoolExecutor(cores(), initializer=torch.set_num_threads, initargs=(1,)) as pool:
        return list(pool.map(alone, items))


def _best() -> str:
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"
