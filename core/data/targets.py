"""Forget targets: what is to be forgotten, never how."""

import abc
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Literal, final, get_args

import torch
from torch import Tensor

from core.data.examples import Dataset, Examples

__support__ = True

Level = Literal["class", "subclass", "instance"]
LEVELS: frozenset[Level] = frozenset(get_args(Level))


def served(levels: Iterable[str]) -> str:
    """Kinds of target for a sentence: `class, instance and subclass targets`."""
    *most, last = sorted(levels)
    return f"{', '.join(most)} and {last} targets" if most else f"{last} targets"


class TargetError(ValueError):
    """A target that cannot be met; the text is one sentence."""


@dataclass(frozen=True)
class ForgetTarget(abc.ABC):
    """One text names it in the address, on the command line and in the report."""

    level: ClassVar[Level]

    @abc.abstractmethod
    def mask(self, examples: Examples, train: bool) -> Tensor:
        """Which examples (n, bool) are to be forgotten; `train` tells which part they are of."""

    @abc.abstractmethod
    def __str__(self) -> str: ...

    @abc.abstractmethod
    def title(self) -> str:
        """For a sentence: "Has it really forgotten ...?"."""


@final
@dataclass(frozen=True)
class ForgetClasses(ForgetTarget):
    """All images of one or several classes."""

    level: ClassVar = "class"
    labels: tuple[int, ...]
    names: tuple[str, ...]

    def mask(self, examples: Examples, train: bool) -> Tensor:
        return torch.isin(examples.y, torch.tensor(self.labels))

    def __str__(self) -> str:
        if len(self.names) == 1:
            return f"class:{self.names[0]}"
        # A comma within a name would read as the end of the name.
        coded = (name.replace("%", "%25").replace(",", "%2C") for name in self.names)
        return f"classes:{','.join(coded)}"

    def title(self) -> str:
        return " and ".join(
            [", ".join(self.names[:-1]), self.names[-1]] if self.names[1:] else self.names
        )


@final
@dataclass(frozen=True)
class ForgetSubclass(ForgetTarget):
    """All images of one kind within a class that stays: sneakers, of those called footwear.

    The labels do not tell them apart, so that to a method they are images like any others.
    """

    level: ClassVar = "subclass"
    name: str
    parent: str
    ids: tuple[int, ...]

    def mask(self, examples: Examples, train: bool) -> Tensor:
        return torch.isin(examples.ids, torch.tensor(self.ids))

    def __str__(self) -> str:
        return f"subclass:{self.name}"

    def title(self) -> str:
        return f"{self.name} within {self.parent}"


@final
@dataclass(frozen=True)
class ForgetRandom(ForgetTarget):
    """`count` training images, drawn by a generator of its own, the same for everyone."""

    level: ClassVar = "instance"
    count: int
    total: int

    def mask(self, examples: Examples, train: bool) -> Tensor:
        chosen = torch.zeros(len(examples), dtype=torch.bool)
        if train:
            rng = torch.Generator().manual_seed(self.count)
            chosen[torch.randperm(self.total, generator=rng)[: self.count]] = True
        return chosen

    def __str__(self) -> str:
        return f"random:{self.count}"

    def title(self) -> str:
        return f"{self.count} random images"


@final
@dataclass(frozen=True)
class ForgetIds(ForgetTarget):
    """Chosen training images."""

    level: ClassVar = "instance"
    ids: tuple[int, ...]

    def mask(self, examples: Examples, train: bool) -> Tensor:
        return torch.isin(examples.ids, torch.tensor(self.ids))

    def __str__(self) -> str:
        return f"ids:{','.join(map(str, self.ids))}"

    def title(self) -> str:
        return f"{len(self.ids)} chosen image{'s' if len(self.ids) > 1 else ''}"


def parse(text: str, data: Dataset) -> ForgetTarget:
    """The target that `text` names on `data`.

    It is written `class:Sneaker`, `classes:Sandal,Sneaker`, `subclass:Sneaker`, `random:256` or
    `ids:3,17`; after `classes:` a comma within a name is written %2C.

    Raises:
        TargetError: unknown form or name, or nothing left to forget or to retain.
    """
    kind, _, rest = text.partition(":")
    if kind in ("class", "classes"):
        return _classes(kind, rest, data)
    if kind == "subclass":
        return _subclass(rest, data)
    if kind == "random":
        count = _whole(rest, "random")
        if not 1 <= count < len(data.train):
            raise TargetError(
                f"random takes 1 to {len(data.train) - 1} images of {data.name}, not {count}."
            )
        return ForgetRandom(count, len(data.train))
    if kind == "ids":
        ids = tuple(sorted({_whole(part, "ids") for part in rest.split(",")}))
        missing = set(ids) - set(data.train.ids.tolist())
        if missing:
            raise TargetError(f"{data.name} has no training image with the id {min(missing)}.")
        if len(ids) == len(data.train):
            raise TargetError("These are all training images: nothing would be left to retain.")
        return ForgetIds(ids)
    raise TargetError(
        f"{text!r} is no forget target; write class:NAME, classes:A,B, subclass:NAME, random:NUMBER"
        " or ids:3,17."
    )


def subclasses(data: Dataset) -> tuple[str, ...]:
    """Names that can stand after `subclass:`: those that are not all of their class."""
    if data.fine is None:
        return ()
    seen = data.fine[data.train.ids]
    inside = [data.train.y[seen == label].unique() for label in range(len(data.subclasses))]
    kin = [sum(torch.equal(mine, other) for other in inside) for mine in inside]
    return tuple(name for name, n in zip(data.subclasses, kin, strict=True) if n > 1)


def _classes(kind: str, rest: str, data: Dataset) -> ForgetClasses:
    names = [rest]
    if kind == "classes":
        names = [part.replace("%2C", ",").replace("%25", "%") for part in rest.split(",")]
    labels = {_label(name, data.classes, f"{data.name} has no class") for name in names}
    if len(labels) == len(data.classes):
        raise TargetError("These are all classes: nothing would be left to retain.")
    chosen = tuple(sorted(labels))
    return ForgetClasses(chosen, tuple(data.classes[i] for i in chosen))


def _subclass(name: str, data: Dataset) -> ForgetSubclass:
    if data.fine is None:
        raise TargetError(f"{data.name} has no subclasses: its labels are the finest there are.")
    label = _label(name, data.subclasses, f"{data.name} has no subclass")
    exact, ids = data.subclasses[label], (data.fine == label).nonzero().flatten()
    parent = data.classes[int(data.by_id(ids[:1]).y)]
    if exact not in subclasses(data):
        raise TargetError(f"{exact} is all there is of {parent}: forget class:{parent} instead.")
    return ForgetSubclass(exact, parent, tuple(ids.tolist()))


def _label(name: str, names: tuple[str, ...], refusal: str) -> int:
    """Which of `names` is meant, in whatever case."""
    exact = {one: i for i, one in enumerate(names)}
    by_case = {one.strip().casefold(): i for one, i in exact.items()}
    label = exact.get(name, by_case.get(name.strip().casefold()))
    if label is None:
        raise TargetError(f"{refusal} {name.strip()!r}; choose from: {', '.join(names)}.")
    return label


def _whole(text: str, kind: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise TargetError(f"{kind} takes whole numbers, not {text.strip()!r}.") from None
