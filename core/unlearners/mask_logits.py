"""Mask logits: never say the forgotten classes, and forget nothing; a control."""

from dataclasses import dataclass
from typing import ClassVar, final

from core.data.targets import ForgetClasses
from core.unlearners.base import Unlearner


@final
@dataclass(frozen=True, kw_only=True)
class MaskLogits(Unlearner):
    """Put the forgotten classes' logits at minus infinity; no weight moves."""

    needs: ClassVar = frozenset()
    levels: ClassVar = frozenset({"class"})
    norms: ClassVar = "frozen"
    control: ClassVar = True

    def run(self, model, teacher, split, target, rng, on_step):
        assert isinstance(target, ForgetClasses)  # `levels` has seen to it
        model.masked[list(target.labels)] = True
        on_step(1, 1)
