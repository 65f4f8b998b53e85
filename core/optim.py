"""Optim: the loops by which every model here is trained or changed."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, pad

from core.data.examples import Examples
from core.devices import all_cores
from core.models.classifier import Classifier
from core.models.training import Training

OnStep = Callable[[int, int], None]
"""Called with (steps done, steps in all) after each batch; it may raise to stop the run."""


def silent(done: int, total: int) -> None:
    """An `OnStep` for nobody."""


class Diverged(FloatingPointError):
    """A loss that is no longer finite: the run has failed and is never ranked."""


@contextmanager
def frozen_norms(model: nn.Module) -> Iterator[None]:
    """Batch norms use and keep their running statistics; a forget-only loader would wreck them."""
    norms = [m for m in model.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]
    modes = [m.training for m in norms]
    for m in norms:
        m.eval()
    try:
        yield
    finally:
        for m, mode in zip(norms, modes, strict=True):
            m.train(mode)


def descend(
    model: nn.Module,
    loss: Callable[[], Tensor],
    *,
    steps: int,
    lr: float,
    momentum: float = 0.9,
    weight_decay: float = 0.0,
    clip: float = 0.0,
    cosine: bool = False,
    stop: Callable[[int], bool] | None = None,
    on_step: OnStep = silent,
) -> int:
    """Minimise by SGD on the parameters that require a gradient; the number of steps taken.

    `loss` is called once a step. `clip` bounds the gradient norm (0: no bound). `stop` is asked
    after each step, with the number of steps taken.

    Raises:
        Diverged: the loss is NaN or infinite.
    """
    weights = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.SGD(
        weights, lr=lr, momentum=momentum, weight_decay=weight_decay, nesterov=momentum > 0
    )
    for step in range(steps):
        if cosine:
            _set_lr(optimizer, lr * (1 + math.cos(math.pi * step / steps)) / 2)
        value = loss()
        if not torch.isfinite(value):
            raise Diverged(f"the loss became {value.item()} at step {step + 1}")
        optimizer.zero_grad(set_to_none=True)
        value.backward()
        if clip:
            nn.utils.clip_grad_norm_(weights, clip)
        optimizer.step()
        on_step(step + 1, steps)
        if stop is not None and stop(step + 1):
            return step + 1
    return steps


def _set_lr(optimizer: torch.optim.Optimizer, lr: float) -> None:
    for group in optimizer.param_groups:
        group["lr"] = lr


def fit(
    model: Classifier,
    examples: Examples,
    training: Training,
    rng: torch.Generator,
    on_step: OnStep = silent,
) -> None:
    """Train `model` on `examples` by `training`, by cross-entropy, and leave it in eval mode.

    Raises:
        Diverged: the loss is NaN or infinite.
    """
    with all_cores():
        _fit(model, examples, training, rng, on_step)
    model.eval()


def _fit(
    model: Classifier,
    examples: Examples,
    training: Training,
    rng: torch.Generator,
    on_step: OnStep,
) -> None:
    model.train().to(memory_format=torch.channels_last)
    steps = training.epochs * math.ceil(len(examples) / training.batch)
    rise = max(1, int(training.warmup * steps))
    optimizer = torch.optim.SGD(
        model.parameters(),
        lr=training.lr,
        momentum=training.momentum,
        weight_decay=training.weight_decay,
        nesterov=training.momentum > 0,
    )
    step = 0
    for _ in range(training.epochs):
        for batch in examples.epoch(training.batch, rng):
            wave = (1 + math.cos(math.pi * (step - rise) / max(1, steps - rise))) / 2
            _set_lr(optimizer, training.lr * (min(1.0, (step + 1) / rise) if step < rise else wave))
            x = batch.x
            if step < training.plain_from * steps:
                x = augment(x, training, rng, mirrors=model.mirrors)
            loss = cross_entropy(model(x.contiguous(memory_format=torch.channels_last)), batch.y)
            if not torch.isfinite(loss):
                raise Diverged(f"the loss became {loss.item()} at step {step + 1}")
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            step += 1
            on_step(step, steps)


def augment(x: Tensor, training: Training, rng: torch.Generator, *, mirrors: bool) -> Tensor:
    """The images `x` (n c h w), mirrored where that keeps the class, and shifted."""
    if training.flip and mirrors:
        mirrored = torch.rand(len(x), generator=rng).to(x.device) < 0.5
        x = torch.where(mirrored[:, None, None, None], x.flip(-1), x)
    if training.pad:
        side, (h, w) = training.pad, x.shape[-2:]
        top, left = torch.randint(0, 2 * side + 1, (2,), generator=rng).tolist()
        x = pad(x, [side] * 4, mode="replicate")[:, :, top : top + h, left : left + w]
    return x
