"""Coarse: a data set under coarser names, whose own classes become subclasses."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

import torch

from core.data.examples import DataError, Dataset, Examples

__support__ = True

Groups = Mapping[str, Iterable[str]]
"""Coarse class to the names of its subclasses."""


def coarse(data: Dataset, groups: Groups, name: str) -> Dataset:
    """`data` with the classes `groups`, in their order; every class lies in one of them."""
    parent = {fine: label for label, fines in enumerate(groups.values()) for fine in fines}
    labels = torch.tensor([parent[fine] for fine in data.classes])

    def under(part: Examples) -> Examples:
        return replace(part, y=labels[part.y])

    ids = torch.cat([part.ids for part in data.parts])
    fine = torch.full((int(ids.max()) + 1,), -1)
    fine[ids] = torch.cat([part.y for part in data.parts])
    return replace(
        data,
        name=name,
        classes=tuple(groups),
        train=under(data.train),
        test=under(data.test),
        external=under(data.external) if data.external else None,
        subclasses=data.classes,
        fine=fine,
    )


def refuse(argument: str, name: str) -> None:
    """Accept `coarse` or nothing after the colon.

    Raises:
        DataError: another argument.
    """
    if argument not in ("", "coarse"):
        raise DataError(f"{name} takes coarse or nothing after a colon, not {argument!r}.")
