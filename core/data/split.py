"""Split: forget, retain and validation sets of the training data, and the test data's two parts."""

from dataclasses import dataclass, fields

import torch

from core.data.examples import Dataset, Examples
from core.data.targets import ForgetTarget, TargetError

__support__ = True


@dataclass(frozen=True, eq=False)
class Split:
    """Five sets without a common example. A forgotten class is compared with `test_forget`:
    against the whole test set even gold would look guilty.
    """

    forget: Examples
    retain: Examples
    val: Examples
    test_forget: Examples
    test_retain: Examples

    def only(self, names: frozenset[str]) -> "Split":
        """This split with every set that is not named emptied."""
        sets = {f.name: getattr(self, f.name) for f in fields(self)}
        return Split(**{n: s if n in names else s[:0] for n, s in sets.items()})

    def to(self, device: torch.device) -> "Split":
        return Split(**{f.name: getattr(self, f.name).to(device) for f in fields(self)})


SETS = tuple(f.name for f in fields(Split))


def split(data: Dataset, target: ForgetTarget, *, val: float = 0.0, seed: int = 0) -> Split:
    """The sets for forgetting `target`; a share `val` in [0, 1) of the retain set is held out.

    Raises:
        TargetError: nothing to forget, or nothing left to retain.
    """
    gone, test_gone = target.mask(data.train, True), target.mask(data.test, False)
    rest = data.train[~gone]
    held = torch.zeros(len(rest), dtype=torch.bool)
    order = torch.randperm(len(rest), generator=torch.Generator().manual_seed(seed))
    held[order[: int(val * len(rest))]] = True
    if not gone.any():
        raise TargetError(f"{data.name} has no training image to forget for {target}.")
    if held.all():
        raise TargetError(f"Nothing of {data.name} would be left to retain.")
    return Split(
        data.train[gone], rest[~held], rest[held], data.test[test_gone], data.test[~test_gone]
    )
