"""Outputs: what one model says and shows on fixed rows, from one pass, shared by all metrics."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from core.data.examples import Examples
from core.devices import spread
from core.metrics.relearning import Relearned
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
    relearned: Relearned | None = None
    """How a copy of it learned the forgotten classes again; None where nobody tried."""

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
    body: Outputs | None = None,
    batch: int = 500,
) -> Outputs:
    """Run `model` over `parts` once, in eval mode and without augmentation.

    `body` is what a model with the same body showed of the same parts: it need not run again.
    """
    model.eval()
    features: dict[str, Mapping[str, Tensor]] = {}
    logits: dict[str, Tensor] = {}
    for name, part in parts.items():
        if not len(part):
            features[name] = dict.fromkeys(model.taps, torch.zeros(0, 1))
            logits[name] = torch.zeros(0, model.head.out_features)
        elif body is not None:
            features[name], logits[name] = _behind(model, body.features[name])
        else:
            features[name], logits[name] = _through(model, part, batch)
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


def _through(model: Classifier, part: Examples, batch: int) -> tuple[dict[str, Tensor], Tensor]:
    device = model.head.weight.device
    seen = spread(lambda b: model.observe(b.x), part.ordered(batch), device)
    features = {tap: torch.cat([f[tap] for f, _ in seen]).float().cpu() for tap in model.taps}
    return features, torch.cat([z for _, z in seen]).float().cpu()


def _behind(model: Classifier, known: Mapping[str, Tensor]) -> tuple[dict[str, Tensor], Tensor]:
    beyond, logits = model.behind(known["penultimate"].to(model.head.weight.device))
    body = {tap: known[tap] for tap in model.taps if tap not in beyond}
    return body | {tap: z.float().cpu() for tap, z in beyond.items()}, logits.float().cpu()


def predicted(logits: Tensor) -> Tensor:
    """The class with the largest logit (n); -1 where several share it or one is NaN.

    `argmax` alone would silently answer class 0 for a model that has become uniform.
    """
    if not len(logits):
        return torch.zeros(0, dtype=torch.long)
    best = logits.max(1, keepdim=True)
    tied = (logits >= best.values - 1e-6).sum(1) > 1
    return torch.where(tied | torch.isnan(logits).any(1), -1, best.indices.squeeze(1))
