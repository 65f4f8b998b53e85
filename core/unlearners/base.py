"""Unlearner: the one verb every method is called by, final where honesty matters."""

import abc
import copy
import time
from dataclasses import dataclass
from typing import ClassVar, Literal, final

import torch

from core.data.examples import Examples
from core.data.split import SETS, Split
from core.data.targets import LEVELS, ForgetTarget, Level, TargetError, served
from core.knobs import Knobbed
from core.models.classifier import Classifier
from core.optim import Diverged, OnStep, frozen_norms, silent

__support__ = True

Access = Literal["forget", "retain", "head"]


@dataclass(frozen=True)
class Citation:
    """Where a method comes from."""

    authors: str
    year: int
    title: str
    link: str


@dataclass(frozen=True, eq=False)
class Unlearned:
    """What an unlearner gives back."""

    model: Classifier
    seconds: float
    """Wall clock of the method alone: preparation and early stopping included, evaluation not."""
    read: dict[str, int]
    """How many different samples of each set the method looked at."""
    note: str = ""
    """What the method has to say about this run, in one sentence."""


@dataclass(frozen=True, kw_only=True)
class Unlearner(Knobbed, abc.ABC):
    """A method; subclasses are frozen dataclasses of knobs that write `run`.

    Raises:
        KnobError: a knob out of its range.
    """

    cite: ClassVar[Citation | None] = None
    needs: ClassVar[frozenset[Access]]
    """What `run` may read beside the model; sets that are not named arrive empty."""
    levels: ClassVar[frozenset[Level]] = LEVELS
    norms: ClassVar[Literal["frozen", "train"]] = "train"
    """Batch norm's running statistics: kept, or moved by what the method reads."""
    control: ClassVar[bool] = False
    """A control does not unlearn; it is there to test the audit."""
    caveat: ClassVar[str] = ""
    """What to know before choosing it, in one sentence: where at its defaults it is no better than
    doing nothing, and why."""
    from_original: ClassVar[bool] = True
    """Whether the result descends from the original's weights (retraining's does not)."""

    @abc.abstractmethod
    def run(
        self,
        model: Classifier,
        teacher: Classifier,
        split: Split,
        target: ForgetTarget,
        rng: torch.Generator,
        on_step: OnStep,
    ) -> Classifier | str | None:
        """Change `model` in place, or return another, or one sentence about the run.

        `teacher` is a frozen copy of the original in eval mode.
        """

    @final
    def __call__(
        self,
        original: Classifier,
        split: Split,
        target: ForgetTarget,
        *,
        seed: int = 0,
        on_step: OnStep = silent,
    ) -> Unlearned:
        """The unlearned model; `original` is left as it was.

        Raises:
            TargetError: the method does not serve this kind of target.
            Diverged: the method's loss or weights are no longer finite.
        """
        if target.level not in self.levels:
            kinds = served(self.levels)
            raise TargetError(f"{type(self).__name__} serves {kinds} only, not {target}.")
        watched = _watch(split.only(frozenset(self.needs) & set(SETS)))
        start = time.perf_counter()
        model = copy.deepcopy(original).train()
        teacher = copy.deepcopy(original).eval().requires_grad_(False)
        with torch.random.fork_rng(devices=[]), torch.enable_grad():
            rng = torch.manual_seed(seed)
            if self.norms == "frozen":
                with frozen_norms(model):
                    said = self.run(model, teacher, watched, target, rng, on_step)
            else:
                said = self.run(model, teacher, watched, target, rng, on_step)
        result = said if isinstance(said, Classifier) else model
        result.requires_grad_(True).zero_grad(set_to_none=True)
        _refuse_nan(result)
        seconds = time.perf_counter() - start
        read = {name: getattr(watched, name).count for name in ("forget", "retain")}
        return Unlearned(result.eval(), seconds, read, said if isinstance(said, str) else "")


@dataclass(frozen=True, eq=False)
class _Watched(Examples):
    """Examples that remember which of them were looked at."""

    seen: torch.Tensor

    @property
    def count(self) -> int:
        return int(self.seen.sum())

    def __getitem__(self, rows: torch.Tensor | slice) -> Examples:
        self.seen[rows] = True
        return super().__getitem__(rows)

    def float(self):
        self.seen[:] = True
        return super().float()

    def to(self, device: torch.device) -> Examples:
        return _Watched(self.x.to(device), self.y.to(device), self.ids.to(device), self.seen)


def _watch(split: Split) -> Split:
    sets = {name: getattr(split, name) for name in SETS}
    return Split(
        **{
            n: _Watched(s.x, s.y, s.ids, torch.zeros(len(s), dtype=torch.bool))
            for n, s in sets.items()
        }
    )


def _refuse_nan(model: Classifier) -> None:
    for name, tensor in model.state_dict().items():
        if tensor.is_floating_point() and not torch.isfinite(tensor).all():
            raise Diverged(f"{name} holds values that are not finite")
