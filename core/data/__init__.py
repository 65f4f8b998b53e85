"""Data sets by name: `load("fashion")`, `load("npz:FILE")`."""

import sys
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from core import registry
from core.data.base import Report, Source, silent
from core.data.examples import DataError, Dataset

SOURCES: Mapping[str, type[Source]] = registry.discover(sys.modules[__name__], Source)


@lru_cache(maxsize=2)
def _load(name: str, stamp: float) -> Dataset:
    return _fetch(name, silent)


def _fetch(name: str, report: Report) -> Dataset:
    kind, _, argument = name.partition(":")
    source = registry.find(SOURCES, kind, "data set")()
    if argument and not source.argument:
        raise DataError(f"{kind} takes nothing after a colon.")
    return source.load(argument, report)


def offered() -> list[str]:
    """Names that people can choose from without saying more."""
    return [
        name + suffix
        for name, source in SOURCES.items()
        if source.public and (source.variants or not source.argument)
        for suffix in ("", *(f":{one}" for one in source.variants))
    ]


def load(name: str, report: Report = silent) -> Dataset:
    """The data set called `name`, kept in memory for the next call.

    Raises:
        UnknownName: no such data set.
        DataError: it cannot be had.
    """
    if report is not silent:
        return _fetch(name, report)
    return _load(name, stamp(name))


def stamp(name: str) -> float:
    """Changes when the file behind `npz:FILE` does, so that no stale copy is served."""
    if not name.startswith("npz:"):
        return 0.0
    try:
        return Path(name.partition(":")[2]).stat().st_mtime
    except (OSError, ValueError):  # no such file, or a path that no file can have
        return 0.0
