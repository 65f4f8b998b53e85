"""Adam: the loop of the methods whose step size is adapted to each weight."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from core.optim import Diverged, OnStep

__support__ = True


def adapt(
    model: nn.Module,
    loss: Callable[[], Tensor],
    *,
    steps: int,
    lr: float,
    decay: float = 1.0,
    every: int = 1,
    enough: float = 0.0,
    on_step: OnStep,
) -> None:
    """Minimise by Adam (Kingma and Ba 2015, arxiv.org/abs/1412.6980) on what requires a gradient.

    `loss` is called once a step; the step size is multiplied by `decay` after `every` steps. A
    loss of at most `enough` moves nothing: next to a minimum Adam would blow rounding up into
    steps of full size.

    Raises:
        Diverged: the loss is NaN or infinite.
    """
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=lr)
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = lr * decay ** (step // every)
        value = loss()
        if not torch.isfinite(value):
            raise Diverged(f"the loss became {value.item()} at step {step + 1}")
        if value > enough:
            optimizer.zero_grad(set_to_none=True)
            value.backward()
            optimizer.step()
        on_step(step + 1, steps)
