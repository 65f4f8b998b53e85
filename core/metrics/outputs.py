"""Outputs: what one model says and shows on fixed rows, from one pass, shared by all metrics."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from core.data.examples import Examples
from core.models.classifier import Classifier

__support__ = True

Parts = Mapping[str, Examples]
"""The sets that are looked at, by name: forget, retain, test_forget, test_retain (and
external_forget, external_retain where there is an external test set); the same for all models."""


@dataclass(frozen=True, eq=False)
class Outputs:
    """One model on `Parts`; row i of a set is the same image for every model. All on the CPU."""

    taps: tuple[str, ...]
    """Places along depth, input side first; the last one feeds the head."""
    features: Mapping[str, Mapping[str, Tensor]]
    """Set to tap to pooled features (n d, float32)."""
    logits: Mapping[str, Tensor]
    """Set to logits (n k, float32); -inf where the model masks a class."""
    y: Mapping[str, Tensor]
    ids: Mapping[str, Tensor]
    head: Tensor
    """The head's rows (k d)."""
    bias: Tensor
    """The head's biases (k)."""
    forget_classes: tuple[int, ...]
    """The labels that are to be forgotten; empty for an instance target."""
    seconds: float | None = None
    """How long the model took to make, in seconds; None where nobody measured it."""

    def at(self, tap: str, *sets: str) -> Tensor:
        """Features of the sets, one below the other (n d)."""
        return torch.cat([self.features[name][tap] for name in sets])

    def labels(self, *sets: str) -> Tensor:
        """Labels of the sets, one below the other (n)."""
        return torch.cat([self.y[name] for name in sets])


@torch.inference_mode()
def observe(
    model: Classifier,
    parts: Parts,
    forget_classes: tuple[int, ...] = (),
    *,
    seconds: float | None = None,
    batch: int = 500,
) -> Outputs:
    """Run `model` over `parts` once, in eval mode and without augmentation."""
    model.eval()
    features: dict[str, dict[str, Tensor]] = {}
    logits: dict[str, Tensor] = {}
    for name, part in parts.items():
        seen = [model.observe(b.x) for b in part.ordered(batch)]
        features[name] = {
            tap: torch.cat([f[tap] for f, _ in seen]).float().cpu() if seen else torch.zeros(0, 1)
            for tap in model.taps
        }
        logits[name] = (
            torch.cat([z for _, z in seen]).float().cpu()
            if seen
            else torch.zeros(0, model.head.out_features)
        )
    return Outputs(
        taps=model.taps,
        features=features,
        logits=logits,
        y={name: part.y.cpu() for name, part in parts.items()},
        ids={name: part.ids.cpu() for name, part in parts.items()},
        head=model.head.weight.detach().float().cpu().clone(),
        bias=model.head.bias.detach().float().cpu().clone(),
        forget_classes=forget_classes,
        seconds=seconds,
    )


def predicted(logits: Tensor) -> Tensor:
    """The class with the largest logit (n); -1 where several share it or one is NaN.

    `argmax` alone would silently answer class 0 for a model that has become uniform.
    """
    if not len(logits):
        return torch.zeros(0, dtype=torch.long)
    best = logits.max(1, keepdim=True)
    tied = (logits >= best.values - 1e-6).sum(1) > 1
    return torch.where(tied | torch.isnan(logits).any(1), -1, best.indices.squeeze(1))
