"""Classifier: a body of named stages, an optional transform, and a linear head."""

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

__support__ = True


class Transform(nn.Module):
    """What some methods put between body and head; buffers and parameters decide it fully."""

    @classmethod
    def blank(cls, state: Mapping[str, Tensor]) -> "Transform":
        """An instance whose tensors have the shapes of `state`, ready to load it."""
        raise TypeError(f"{cls.__name__} cannot be rebuilt from its tensors.")


class Classifier(nn.Module):
    """Images in [0, 1] to logits; everything in between can be looked at by name.

    Normalisation is part of the model, so that whoever perturbs pixels works in pixel units.
    The last stage's pooled output is the tap `penultimate`; `transform` follows it where a
    method has put one there. Classes in `masked` have the logit -inf.
    """

    mean: Tensor
    std: Tensor
    masked: Tensor

    def __init__(
        self, stages: Mapping[str, nn.Module], width: int, classes: int, mean: Tensor, std: Tensor
    ) -> None:
        super().__init__()
        self.body = nn.ModuleDict(stages)
        self.transform: Transform | None = None
        self.head = nn.Linear(width, classes)
        self.register_buffer("mean", mean.view(-1, 1, 1).clone())
        self.register_buffer("std", std.view(-1, 1, 1).clone())
        self.register_buffer("masked", torch.zeros(classes, dtype=torch.bool))
        self.recipe: Any = None
        """The `Architecture` and image shape that made it; `fresh` needs them."""
        self.mirrors = True
        """Whether training may mirror its images (see `Dataset.mirrors`)."""
        self.names: tuple[str, ...] = ()
        """What its outputs stand for, in words; empty where nobody has said."""

    @property
    def taps(self) -> tuple[str, ...]:
        """The places to look, input side first."""
        names = (*tuple(self.body)[:-1], "penultimate")
        return names if self.transform is None else (*names, "transform")

    def stages(self, x: Tensor) -> Iterator[tuple[str, Tensor]]:
        """Each tap's activation, unpooled, as the images `x` (n c h w, in [0, 1]) pass."""
        h = (x - self.mean) / self.std
        for name, stage in zip(self.taps, self.body.values(), strict=False):
            h = stage(h)
            yield name, h
        if self.transform is not None:
            yield "transform", self.transform(pool(h))

    def features(self, x: Tensor) -> Tensor:
        """What the head sees (n d)."""
        *_, (_, h) = self.stages(x)
        return pool(h)

    def logits(self, z: Tensor) -> Tensor:
        """The head on features (n d), with the masked classes at -inf."""
        return self.head(z).masked_fill(self.masked, -torch.inf)

    def forward(self, x: Tensor) -> Tensor:
        return self.logits(self.features(x))

    def observe(self, x: Tensor) -> tuple[dict[str, Tensor], Tensor]:
        """Pooled features at every tap (n d each) and the logits (n k), in one pass."""
        seen = {name: pool(h) for name, h in self.stages(x)}
        return seen, self.logits(seen[self.taps[-1]])

    def behind(self, z: Tensor) -> tuple[dict[str, Tensor], Tensor]:
        """What `observe` says from the body's pooled features `z` (n d) on: the transform's
        features, if there is one, and the logits."""
        seen = {} if self.transform is None else {"transform": self.transform(z)}
        return seen, self.logits(seen.get("transform", z))

    def same_body(self, other: "Classifier") -> bool:
        """Whether both bodies turn any image into the same features."""
        a, b = ({"mean": m.mean, "std": m.std} | m.body.state_dict() for m in (self, other))
        return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)

    def fresh(self) -> "Classifier":
        """The same architecture with new weights from torch's current generator."""
        architecture, shape = self.recipe
        moments = self.mean.flatten(), self.std.flatten()
        made = architecture.build(shape, self.head.out_features, *moments, mirrors=self.mirrors)
        made.names = self.names
        return made


def pool(h: Tensor) -> Tensor:
    """Global average over space (n c h w to n c); features (n d) pass unchanged."""
    return h.mean((2, 3)) if h.ndim == 4 else h
