"""PGD: forgotten images moved into other classes, which stand in for the retain set."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from core.data.examples import Batch, Examples
from core.data.targets import ForgetTarget
from core.losses import gone
from core.models.classifier import Classifier
from core.optim import OnStep, descend, silent
from core.unlearners.random_label import draw

__support__ = True


def push(
    teacher: Classifier,
    x: Tensor,
    labels: Tensor,
    *,
    eps: float,
    step: float,
    steps: int,
    rng: torch.Generator,
) -> Tensor:
    """Images in [0, 1], each within L2 distance `eps` of `x` (n c h w), that pass for `labels` (n).

    Projected gradient descent from a random point of the ball (Madry et al. 2018,
    arxiv.org/abs/1706.06083), each step `step` long; pixels are in [0, 1], as normalisation is
    part of the model.
    """
    start = torch.randn(x.shape, generator=rng).to(x)
    length = eps * torch.rand(len(x), generator=rng).to(x)
    away = _scaled(start, length)
    for _ in range(steps):
        moved = (x + away).clamp(0, 1).requires_grad_(True)
        (slope,) = torch.autograd.grad(cross_entropy(teacher(moved), labels), moved)
        away = moved.detach() - x - _scaled(slope, torch.full_like(length, step))
        away = _scaled(away, _length(away).clamp(max=eps))
    # Clamping moves no pixel away from x, which lies in [0, 1] too.
    return (x + away).clamp(0, 1)


def proxies(
    teacher: Classifier,
    forget: Examples,
    target: ForgetTarget,
    rng: torch.Generator,
    *,
    count: int,
    eps: float,
    steps: int,
    batch: int = 128,
    on_step: OnStep = silent,
) -> Batch:
    """`count` adversarial images of the forget set, with the labels that they pass for.

    Each image is used as often as any other, to within one. A label is uniform over all classes
    that are not to be forgotten (the published expression always gives k // 2). A step is a tenth
    of `eps`, or as much longer as few steps need to cross the ball.
    """
    order = torch.cat(
        [torch.randperm(len(forget), generator=rng) for _ in range(-(-count // len(forget)))]
    )[:count]
    parts = order.to(forget.y.device).split(batch)
    step, made = max(0.1, 2.5 / steps) * eps, []
    for done, rows in enumerate(parts, 1):
        f = forget[rows].float()
        labels = draw(gone(target, f.y), teacher.head.out_features, rng)
        x = push(teacher, f.x, labels, eps=eps, step=step, steps=steps, rng=rng)
        made.append(replace(f, x=x, y=labels))
        on_step(done, len(parts))
    return Batch(*(torch.cat([getattr(m, name) for m in made]) for name in ("x", "y", "ids")))


def attacks(count: int, batch: int = 128) -> int:
    """How many batches `proxies` makes."""
    return -(-count // batch)


def misclassify(
    model: Classifier,
    forget: Examples,
    others: Batch,
    rng: torch.Generator,
    *,
    steps: int,
    lr: float,
    batch: int,
    clip: float,
    stop: float,
    penalty: Callable[[], Tensor] = lambda: torch.zeros(()),
    on_step: OnStep = silent,
) -> None:
    """Minimise CE(others) - CE(forget), by their shares of a step, + penalty.

    It ends at the first batch of the forget set of which at most the share `stop` is named.
    """
    batches, named = forget.batches(batch, rng), 1.0
    stand_ins = _cycle(others, 4 * batch, rng)

    def loss() -> Tensor:
        nonlocal named
        f, o = next(batches), next(stand_ins)
        logits = model(f.x)
        named = (logits.argmax(1) == f.y).double().mean().item()
        share = len(f.y) / (len(f.y) + len(o.y))
        kept, gone = cross_entropy(model(o.x), o.y), cross_entropy(logits, f.y)
        return (1 - share) * kept - share * gone + penalty()

    descend(
        model,
        loss,
        steps=steps,
        lr=lr,
        clip=clip,
        stop=lambda step: named <= stop,
        on_step=on_step,
    )


def _cycle(whole: Batch, size: int, rng: torch.Generator) -> Iterator[Batch]:
    while True:
        for rows in torch.randperm(len(whole.y), generator=rng).to(whole.y.device).split(size):
            yield Batch(whole.x[rows], whole.y[rows], whole.ids[rows])


def _length(x: Tensor) -> Tensor:
    return x.flatten(1).norm(dim=1)


def _scaled(x: Tensor, length: Tensor) -> Tensor:
    """Each of `x` (n c h w) at its `length` (n); one of no length stays as it is."""
    return x * (length / _length(x).clamp_min(1e-12)).view(-1, 1, 1, 1)
