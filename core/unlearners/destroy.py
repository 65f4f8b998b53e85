"""Destroy: new random weights, so that everything is lost; a control."""

from dataclasses import dataclass
from typing import ClassVar, final

from core.unlearners.base import Unlearner


@final
@dataclass(frozen=True, kw_only=True)
class Destroy(Unlearner):
    """The same architecture as nobody has trained it."""

    needs: ClassVar = frozenset()
    control: ClassVar = True
    from_original: ClassVar = False

    def run(self, model, teacher, split, target, rng, on_step):
        # `fresh` draws from torch's own generator, which is `rng` during a run.
        new = model.fresh().to(model.mean.device)
        on_step(1, 1)
        return new
