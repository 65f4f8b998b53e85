"""Kodge SVD: projects weights away from what activates on the forget set alone, in closed form."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, final

import torch
from torch import Tensor, nn
from torch.nn.functional import unfold

from core.data.examples import Examples
from core.knobs import knob
from core.models.classifier import Classifier
from core.optim import Diverged, OnStep, silent
from core.unlearners.base import Citation, Unlearner
from core.unlearners.shots import balanced, sample
from core.unlearners.two_sets import counted

Layer = nn.Conv2d | nn.Linear


@final
@dataclass(frozen=True, kw_only=True)
class KodgeSVD(Unlearner):
    """W -> W (I - M_f (I - M_r))^T in every convolution and linear layer; biases and norms stay.

    M = U diag(alpha r / ((alpha - 1) r + 1)) U^T, where U are the principal directions of a
    layer's inputs (a convolution's patches) over the few images read, and r the shares of their
    energy. All layers use activations of the original. It is not monotone in either alpha.
    Differs: U comes from the second moments of all patches, where the published code draws some
    and takes an SVD; the alphas are knobs, not searched for on held-out images.
    """

    cite: ClassVar = Citation(
        "Kodge, Saha, Roy",
        2024,
        "Deep Unlearning: Fast and Efficient Gradient-free Class Forgetting",
        "arxiv.org/abs/2312.00761",
    )
    needs: ClassVar = frozenset({"forget", "retain"})
    levels: ClassVar = frozenset({"class"})
    norms: ClassVar = "frozen"

    alpha_retain: float = knob(
        100.0, 1.0, 1e6, "how much of the retain set's directions is spared", log=True
    )
    alpha_forget: float = knob(
        6.0, 0.0, 1e6, "how much of the forget set's directions goes; at 0 nothing does", log=True
    )
    images: int = knob(900, 1, 10_000, "forgotten images read, and retained ones", log=True)
    batch: int = knob(100, 1, 1024, "images a pass", unit="images")

    def run(self, model, teacher, split, target, rng, on_step):
        sets = (
            sample(split.forget, self.images, rng),
            balanced(split.retain, self.images, rng),
        )
        count = counted(on_step, sum(-(-len(part) // self.batch) for part in sets))
        forget, retain = (moments(teacher, part, self.batch, count) for part in sets)
        with torch.no_grad():
            for name, layer in layers(model).items():
                m_f = importance(forget[name], self.alpha_forget)
                m_r = importance(retain[name], self.alpha_retain)
                w = layer.weight.flatten(1)
                gone = (w.cpu().double() @ (m_f - m_f @ m_r).T).to(w)
                layer.weight -= gone.view_as(layer.weight)


def layers(model: nn.Module) -> dict[str, Layer]:
    """The convolutions and linear layers of `model`, by name."""
    return {n: m for n, m in model.named_modules() if isinstance(m, Layer)}


def importance(moment: Tensor, alpha: float) -> Tensor:
    """U diag(alpha r / ((alpha - 1) r + 1)) U^T for second moments (d d) with eigenvectors U."""
    energy, directions = torch.linalg.eigh(moment)
    r = energy.clamp_min(0) / energy.clamp_min(0).sum().clamp_min(1e-30)
    kept = alpha * r / ((alpha - 1) * r + 1).clamp_min(1e-30)
    return (directions * kept) @ directions.T


@torch.no_grad()
def moments(
    model: Classifier, examples: Examples, batch: int, on_step: OnStep = silent
) -> dict[str, Tensor]:
    """Each layer's A^T A (d d, float64), with a row of A for each input or patch it is given.

    Raises:
        Diverged: an activation is not finite.
    """
    with _watching(model) as totals:
        for done, b in enumerate(examples.ordered(batch), 1):
            model(b.x)
            on_step(done, -(-len(examples) // batch))
    for name, total in totals.items():
        if not torch.isfinite(total).all():
            raise Diverged(f"what {name} is given is not finite")
    return totals


@contextmanager
def _watching(model: Classifier) -> Iterator[dict[str, Tensor]]:
    """Sums of A^T A by layer while images pass; no hook stays, whatever happens."""
    totals: dict[str, Tensor] = {}

    def add(name: str, module: nn.Module, args: tuple[Tensor]) -> None:
        rows = args[0]
        if isinstance(module, nn.Conv2d):
            shape = module.kernel_size, module.dilation, _pad(module), module.stride
            rows = unfold(rows, *shape).transpose(1, 2).flatten(0, 1)
        totals[name] = totals.get(name, 0) + (rows.T @ rows).cpu().double()

    handles = [m.register_forward_pre_hook(partial(add, n)) for n, m in layers(model).items()]
    try:
        yield totals
    finally:
        for handle in handles:
            handle.remove()


def _pad(layer: nn.Conv2d) -> tuple[int, ...]:
    assert not isinstance(layer.padding, str)  # no architecture here pads by a word
    return layer.padding
