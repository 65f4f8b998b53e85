"""Do nothing: the original again, as a control that must be told from gold."""

from dataclasses import dataclass
from typing import ClassVar, final

from core.unlearners.base import Unlearner


@final
@dataclass(frozen=True, kw_only=True)
class DoNothing(Unlearner):
    """Give the original back, bit for bit."""

    needs: ClassVar = frozenset()
    norms: ClassVar = "frozen"
    control: ClassVar = True

    def run(self, model, teacher, split, target, rng, on_step):
        on_step(1, 1)
