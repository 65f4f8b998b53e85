"""Source: where a data set comes from."""

import abc
from collections.abc import Callable
from typing import ClassVar

from core.data.examples import Dataset

__support__ = True

Report = Callable[[float], None]
"""Called with the share of a download that is done, in [0, 1]."""


def silent(share: float) -> None:
    """A `Report` for nobody."""


class Source(abc.ABC):
    """One data set by name; the part after a colon (`npz:PATH`) is its `argument`."""

    argument: ClassVar[str] = ""
    """What the argument means, for people; empty where there is none."""
    variants: ClassVar[tuple[str, ...]] = ()
    """Arguments that people are offered beside none: `coarse` for `fashion:coarse`."""
    download: ClassVar[bool] = False
    """Whether the first use needs a network."""
    public: ClassVar[bool] = True
    """Whether people are offered it; `blobs` is for tests."""

    @abc.abstractmethod
    def load(self, argument: str = "", report: Report = silent) -> Dataset:
        """The data set.

        Raises:
            DataError: it cannot be had, in one sentence.
        """

    def classes(self, argument: str = "") -> tuple[str, ...]:
        """Class names, without a download; empty when only the file itself can tell."""
        return self.load(argument).classes
