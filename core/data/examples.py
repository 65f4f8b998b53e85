"""Examples and data sets: images, labels and ids that travel together."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

__support__ = True


class DataError(ValueError):
    """Data that cannot be had or used; the text is one sentence for the person who asked."""


@dataclass(frozen=True, eq=False)
class Batch:
    """Images in [0, 1] (n c h w), labels and ids (n)."""

    x: Tensor
    y: Tensor
    ids: Tensor


@dataclass(frozen=True, eq=False)
class Examples:
    """uint8 images (n c h w), int64 labels (n) and int64 ids (n)."""

    x: Tensor
    y: Tensor
    ids: Tensor

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, rows: Tensor | slice) -> "Examples":
        """The examples at `rows`: a boolean mask, row numbers, or a slice."""
        return Examples(self.x[rows], self.y[rows], self.ids[rows])

    def to(self, device: torch.device) -> "Examples":
        return Examples(self.x.to(device), self.y.to(device), self.ids.to(device))

    def float(self) -> Batch:
        """All of it as one batch."""
        return Batch(self.x.float() / 255, self.y, self.ids)

    def ordered(self, size: int) -> Iterator[Batch]:
        """Each example once, in order; the last batch may be smaller."""
        for start in range(0, len(self), size):
            yield self[start : start + size].float()

    def epoch(self, size: int, rng: torch.Generator) -> Iterator[Batch]:
        """Each example once, shuffled; a last batch of one joins the batch before it.

        Batch normalisation in training mode cannot take one example.
        """
        order = torch.randperm(len(self), generator=rng).to(self.y.device)
        parts = list(order.split(size))
        if len(parts) > 1 and len(parts[-1]) == 1:
            parts[-2:] = [torch.cat(parts[-2:])]
        for rows in parts:
            yield self[rows].float()

    def batches(self, size: int, rng: torch.Generator) -> Iterator[Batch]:
        """Shuffled batches without end, reshuffled each time round.

        Raises:
            DataError: there is nothing to draw from.
        """
        if not len(self):
            raise DataError(
                "This method asked for samples that it did not declare, or that are empty."
            )
        while True:
            yield from self.epoch(size, rng)


def join(*parts: Examples) -> Examples:
    """The parts, one after the other."""
    return Examples(*(torch.cat([getattr(p, name) for p in parts]) for name in ("x", "y", "ids")))


@dataclass(frozen=True, eq=False)
class Dataset:
    """A data set in memory; ids are unique over all its parts."""

    name: str
    """What was asked for: `fashion`, `npz:FILE`."""
    classes: tuple[str, ...]
    train: Examples
    test: Examples
    licence: str
    origin: str
    """How it was obtained, in one sentence."""
    model: str = "resnet_mini"
    """The architecture that suits it."""
    mirrors: bool = True
    """Whether a mirrored image is still of its class; digits, for one, do not allow it."""
    named: bool = True
    """Whether the classes' names tell what they are; a file without names only numbers them."""
    external: Examples | None = None
    """A second test set from elsewhere (another clinic, say)."""
    subclasses: tuple[str, ...] = ()
    """Names of finer classes that the labels do not tell; see `coarse`."""
    fine: Tensor | None = None
    """The finer class (in `subclasses`) by id, where there are any."""

    def __post_init__(self) -> None:
        check(self)

    @property
    def shape(self) -> tuple[int, int, int]:
        """c h w."""
        c, h, w = self.train.x.shape[1:]
        return c, h, w

    @cached_property
    def digest(self) -> str:
        """SHA-256 of everything that is in it: two files of one name are two data sets."""
        sha = hashlib.sha256("\0".join(self.classes).encode())
        for part in self.parts:
            for tensor in (part.x, part.y):
                sha.update(str(tuple(tensor.shape)).encode() + tensor.numpy().tobytes())
        if self.fine is not None:
            sha.update("\0".join(self.subclasses).encode() + self.fine.numpy().tobytes())
        return sha.hexdigest()

    @cached_property
    def moments(self) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation per channel of the training pixels in [0, 1] (c)."""
        # By counting levels: no float copy of all pixels.
        levels = torch.arange(256).double() / 255
        channels = self.train.x.unbind(1)
        counts = torch.stack([torch.bincount(c.flatten(), minlength=256) for c in channels])
        n = counts.sum(1)
        mean = counts.double() @ levels / n
        var = (counts * (levels - mean[:, None]) ** 2).sum(1) / (n - 1)
        return mean.float(), var.sqrt().float().clamp_min(1e-3)

    @cached_property
    def parts(self) -> tuple[Examples, ...]:
        """Train, test and, where there is one, the external test set."""
        return (self.train, self.test, *([self.external] if self.external else []))

    @cached_property
    def _rows(self) -> Tensor:
        """Row in all parts, one after the other, by id; -1 where there is none."""
        ids = torch.cat([part.ids for part in self.parts])
        rows = torch.full((int(ids.max()) + 1,), -1)
        rows[ids] = torch.arange(len(ids))
        return rows

    def by_id(self, ids: Tensor) -> Examples:
        """The examples with these ids, in this order, from any part.

        Raises:
            DataError: an id that no example has.
        """
        inside = (ids >= 0) & (ids < len(self._rows))
        rows = torch.where(inside, self._rows[ids.clamp(0, len(self._rows) - 1)], -1)
        if (rows < 0).any():
            raise DataError(f"{self.name} has no example with the id {int(ids[rows < 0][0])}.")
        found = Examples(torch.empty(len(ids), *self.shape, dtype=torch.uint8), ids.clone(), ids)
        start = 0
        for part in self.parts:
            mine = (rows >= start) & (rows < start + len(part))
            picked = part[rows[mine] - start]
            found.x[mine], found.y[mine] = picked.x, picked.y
            start += len(part)
        return found


def check(data: Dataset) -> None:
    """Refuse data that nothing here could work with.

    Raises:
        DataError: empty, mismatched, or labels outside the classes.
    """
    parts = {"train": data.train, "test": data.test}
    if data.external is not None:
        parts["external"] = data.external
    for name, part in parts.items():
        if part.x.ndim != 4 or part.x.dtype != torch.uint8:
            raise DataError(f"The {name} images of {data.name} are not uint8 images (n, c, h, w).")
        if not len(part.x) == len(part.y) == len(part.ids) or not len(part):
            raise DataError(f"The {name} part of {data.name} is empty or its labels do not fit.")
        if int(part.y.min()) < 0 or int(part.y.max()) >= len(data.classes):
            raise DataError(f"A {name} label of {data.name} is outside 0..{len(data.classes) - 1}.")
        if part.x.shape[1:] != data.train.x.shape[1:]:
            raise DataError(
                f"The {name} images of {data.name} differ in size from the training images."
            )
    if len(data.classes) < 2 or len(set(data.classes)) < len(data.classes):
        raise DataError(f"{data.name} needs at least two classes with names of their own.")


def number(x: Tensor, y: Tensor, start: int) -> Examples:
    """Examples with the ids start, start + 1, ..."""
    return Examples(x.contiguous(), y.long().flatten(), torch.arange(start, start + len(x)))
