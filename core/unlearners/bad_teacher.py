"""Bad Teacher: on the forget set, learn from a model that knows nothing."""

from dataclasses import dataclass
from typing import ClassVar, final

import torch

from core.data.examples import join
from core.knobs import knob
from core.losses import kl
from core.optim import descend
from core.unlearners.base import Citation, Unlearner
from core.unlearners.two_sets import rounds, some


@final
@dataclass(frozen=True, kw_only=True)
class BadTeacher(Unlearner):
    """Minimise KL(target || model): the target is an untrained model's answer on the forget set,
    and the original's on a share of the retain set; both are shuffled together.

    The forgotten images end with a flat answer, which gold's are not: it gives them away.
    Differs: SGD with clipped gradients rather than Adam; the loss is a mean over images, while
    the authors' code also divides it by the number of classes; batch norm's statistics are kept.
    """

    cite: ClassVar = Citation(
        "Chundawat et al.", 2023, "Can Bad Teaching Induce Forgetting?", "arxiv.org/abs/2205.08096"
    )
    caveat: ClassVar = (
        "At its defaults the seed decides whether none or a twelfth of a class is still named."
    )
    needs: ClassVar = frozenset({"forget", "retain"})
    norms: ClassVar = "frozen"

    lr: float = knob(0.02, 1e-5, 1.0, "SGD step size", log=True)
    epochs: int = knob(2, 1, 100, "passes over what is read")
    share: float = knob(0.3, 0.01, 1.0, "how much of the retain set is read", unit="fraction")
    batch: int = knob(64, 1, 1024, "examples a step")
    clip: float = knob(1.0, 1e-3, 100.0, "largest gradient norm", log=True)

    def run(self, model, teacher, split, target, rng, on_step):
        # `fresh` draws from torch's own generator, which is `rng` during a run.
        bad = model.fresh().to(model.mean.device).eval().requires_grad_(False)
        pool = join(split.forget[:], some(split.retain, self.share, rng))
        batches = pool.batches(self.batch, rng)

        def loss():
            b = next(batches)
            forgotten = torch.isin(b.ids, split.forget.ids)
            with torch.no_grad():
                goal = teacher(b.x)
                goal[forgotten] = bad(b.x[forgotten])
            return kl(goal.softmax(1), model(b.x))

        steps = self.epochs * rounds(pool, self.batch)
        descend(model, loss, steps=steps, lr=self.lr, clip=self.clip, on_step=on_step)
