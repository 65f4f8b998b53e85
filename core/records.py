"""Records: finished runs as they lie on the disk, and how a run in the making is followed."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.arrays import load_arrays
from core.store import StoreError

if TYPE_CHECKING:
    import numpy as np

Progress = Callable[[str, int, int], None]
"""Called with (stage, done, of); it may raise `Cancelled`, which stops between two batches."""


def silent(stage: str, done: int, of: int) -> None:
    """A `Progress` for nobody."""


class Cancelled(Exception):
    """The person who asked does not want it any more."""


@dataclass(frozen=True)
class Record:
    """One finished run."""

    path: Path

    @property
    def key(self) -> str:
        return self.path.name

    @property
    def report(self) -> dict[str, Any]:
        """Recipe, readings, verdict, seconds, versions.

        Raises:
            StoreError: it is not kept any more.
        """
        return self._report

    @cached_property
    def _report(self) -> dict[str, Any]:
        try:
            return json.loads((self.path / "report.json").read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise StoreError("This result is no longer kept; run it again.") from None

    def has(self, name: str) -> bool:
        """Whether `arrays(name)` is there."""
        return (self.path / f"{name}.npz").is_file()

    def arrays(self, name: str) -> "dict[str, np.ndarray]":
        """The arrays in `figures`, `attention`, `features` or `layout_<method>`, read now.

        Raises:
            StoreError: they are not kept (any more).
        """
        return load_arrays(self.path / f"{name}.npz")
