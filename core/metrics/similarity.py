"""CKA of a model's features with a reference's on the same rows, as a reading."""

import torch
from torch import Tensor

from core.geometry import align
from core.metrics.base import Measured, Unavailable
from core.metrics.memo import digest, once
from core.metrics.outputs import Outputs
from core.metrics.spread import linearised

__support__ = True


def rows(model: Outputs, tap: str, *sets: str) -> Tensor:
    """Features of the sets at `tap` (n d), one below the other; empty sets have no width.

    Raises:
        Unavailable: all of the sets are empty.
    """
    found = [name for name in sets if name in model.y and len(model.y[name])]
    if not found:
        said = " or ".join(name.replace("_", " ") for name in sets)
        raise Unavailable(f"there is no sample in {said}")
    return model.at(tap, *found)


def pair(model: Outputs, reference: Outputs | None, tap: str, *sets: str) -> tuple[Tensor, Tensor]:
    """Both models' features of the same rows (n d, n e).

    A reference without the tap (the unlearned model may have a `transform` of its own) is read
    at its last one: what its head sees.

    Raises:
        Unavailable: no reference, or no sample.
        ValueError: the models were shown different rows.
    """
    if reference is None:
        raise Unavailable("there is no model to compare with")
    for name in sets:
        if name in model.ids and not torch.equal(model.ids[name], reference.ids[name]):
            raise ValueError(f"The two models were shown different samples in {name}.")
    there = tap if tap in reference.taps else reference.taps[-1]
    return rows(model, tap, *sets), rows(reference, there, *sets)


def sway(x: Tensor, y: Tensor, *, debiased: bool = False) -> tuple[float, Tensor]:
    """CKA of two sets of features and how much each row moves it (n).

    Raises:
        Unavailable: it is undefined, and why.
    """
    key = ("cka", digest(x), digest(y), debiased)
    try:
        value, moved = once(key, lambda: align.influence(x, y, debiased=debiased))
    except align.Undefined as why:
        raise Unavailable(str(why)) from None
    if debiased and value <= 0:
        raise Unavailable(
            f"undefined: the unbiased HSIC is not positive, so {len(x)} samples show no likeness"
        )
    return value, moved


def likeness(
    model: Outputs,
    reference: Outputs | None,
    tap: str,
    seed: int,
    *sets: str,
    debiased: bool = False,
) -> Measured:
    """CKA over the rows of `sets`, in [0, 1], with its interval.

    Raises:
        Unavailable: it is undefined, and why.
    """
    value, moved = sway(*pair(model, reference, tap, *sets), debiased=debiased)
    return linearised(value, {"_".join(sets): moved}, seed, 0.0, 1.0)
