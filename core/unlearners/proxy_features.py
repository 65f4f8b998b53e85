"""Proxy features: what a proxy is fitted to, read from the original network."""

from dataclasses import dataclass

import torch
from torch import Tensor

from core.data.examples import Examples
from core.data.split import Split
from core.models.classifier import Classifier, pool
from core.optim import Diverged

__support__ = True

MAP_SEED = 0
"""The random map is the same for every model and run."""


@dataclass(frozen=True, eq=False)
class Rows:
    """All training rows, the forgotten ones first: float64, on the CPU."""

    z: Tensor
    """Features (n d), standardised over all rows."""
    log_p: Tensor
    """The network's log-posterior (n k)."""
    y: Tensor
    gone: Tensor
    """Which rows are to be forgotten (n, bool)."""


@torch.no_grad()
def read(model: Classifier, split: Split, tap: str, dims: int) -> Rows:
    """Features and answers of `model`, in eval mode, on the forget and the retain set.

    `tap` is `penultimate`, what the head sees, or `middle`, the map that enters the last stage,
    every pixel of it. More than `dims` features are brought down to so many by a random
    semi-orthogonal map (Johnson and Lindenstrauss 1984, doi.org/10.1090/conm/026/737400).

    Raises:
        Diverged: a feature is NaN or infinite.
    """
    seen = [_look(model, part, tap, dims) for part in (split.forget, split.retain)]
    z, log_p = (torch.cat(parts) for parts in zip(*seen, strict=True))
    if not torch.isfinite(z).all():
        raise Diverged("the network's features are no longer finite")
    z = z - z.mean(0)
    spread = z.square().mean(0).sqrt()
    y = torch.cat([split.forget.y, split.retain.y]).cpu()
    gone = torch.arange(len(y)) < len(split.forget)
    return Rows(z / (spread + 1e-6), log_p, y, gone)


def _look(model: Classifier, examples: Examples, tap: str, dims: int) -> tuple[Tensor, Tensor]:
    taken, answers, squeeze = [], [], None
    for b in examples.ordered(500):
        maps = [h for _, h in model.stages(b.x)]
        last, before = pool(maps[-1]), maps[max(0, len(model.body) - 2)]
        flat = (before if tap == "middle" else last).flatten(1)
        if flat.shape[1] > dims:
            squeeze = _squeeze(flat, dims) if squeeze is None else squeeze
            flat = flat @ squeeze
        taken.append(flat.cpu().double())
        answers.append(model.logits(last).cpu().double().log_softmax(1))
    return torch.cat(taken), torch.cat(answers)


def _squeeze(like: Tensor, dims: int) -> Tensor:
    """A random map with orthonormal columns (D dims)."""
    rng = torch.Generator().manual_seed(MAP_SEED)
    return torch.linalg.qr(torch.randn(like.shape[1], dims, generator=rng)).Q.to(like)
