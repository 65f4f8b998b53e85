"""Grad-CAM: where in the image the evidence for a class lies, at the last spatial stage."""

import copy
import math
from collections.abc import Mapping, Sequence
from typing import cast

import numpy as np
import torch
from torch import Tensor, nn

from core.data.examples import Examples
from core.models.classifier import Classifier

__support__ = True

Arrays = dict[str, np.ndarray]

NOBODY = -1
"""The target of a model that prefers no class to another."""
FLOOR = 1e-6
"""Evidence below this many logits is float32 rounding."""
FORGET_ROWS, CLASSES, EACH = 4, 4, 2
"""Images on show: of the forget set, and of each of the most entangled retained classes."""
BATCH = 256


class NoMap(ValueError):
    """A model that looks nowhere in particular; the text is one sentence."""


def grad_cam(model: Classifier, x: Tensor, targets: Tensor) -> Tensor:
    """Evidence for `targets` (n; -1 asks for none) in images `x` in [0, 1] (n c h w): n h w, >= 0.

    Selvaraju et al. 2017, arxiv.org/abs/1610.02391: ReLU(sum over channels of mean gradient times
    activation), enlarged bilinearly. In logits: with a linear head on pooled features, evidence
    before the ReLU sums over the stage's places to the logit without its bias. A masked class has
    none. Works on a copy, so threads share nothing and the model keeps mode, gradients and hooks.

    Raises:
        NoMap: the model has no spatial stage.
    """
    if not len(x):
        return x.new_zeros(0, *x.shape[2:])
    with torch.inference_mode(False), torch.enable_grad():
        # What was made under inference mode takes part in no graph; a copy does.
        own = copy.deepcopy(model).eval().requires_grad_(False)
        x, asked = x.detach().clone(), targets.clone().to(x.device).split(BATCH)
        layer = spatial(own, x[:1])
        parts = [_maps(own, layer, p, t) for p, t in zip(x.split(BATCH), asked, strict=True)]
    return torch.cat(parts)


def _maps(model: Classifier, layer: nn.Module, x: Tensor, targets: Tensor) -> Tensor:
    from captum.attr import LayerAttribution, LayerGradCam

    # The stages' own weights are frozen: it is the image that makes them part of a graph.
    found = LayerGradCam(model, layer).attribute(
        x.requires_grad_(), targets.clamp_min(0), relu_attributions=True
    )
    size = (x.shape[-2], x.shape[-1])
    grown = LayerAttribution.interpolate(cast(Tensor, found), size, interpolate_mode="bilinear")
    return (grown.squeeze(1) * (targets >= 0)[:, None, None]).detach()


@torch.no_grad()
def spatial(model: Classifier, x: Tensor) -> nn.Module:
    """The layer whose output (n d h w) is the last to know places, seen by passing `x`.

    Tokens become maps: `model`'s last stage but one that gives tokens is wrapped, for behind the
    last one a class token is all that is read, and the others' gradients are zero.

    Raises:
        NoMap: there is none.
    """
    shapes = [h.shape for (_, h), _ in zip(model.stages(x), model.body, strict=False)]
    stages = list(model.body.items())
    maps = [i for i, s in enumerate(shapes) if len(s) == 4 and s[2] * s[3] > 1]
    tokens = [i for i, s in enumerate(shapes) if len(s) == 3]
    if len(tokens) > 1 and tokens[-1] > max(maps, default=-1):
        name, stage = stages[tokens[-2]]
        model.body[name] = wrapped = _Mapped(stage, grid(shapes[tokens[-2]][1]))
        return wrapped.spot
    if not maps:
        raise NoMap("This model has no spatial stage: it does not say where in an image it looks.")
    return stages[maps[-1]][1]


class _Mapped(nn.Module):
    """A stage whose tokens pass through `spot` as a map, and come out as they were."""

    def __init__(self, stage: nn.Module, size: tuple[int, int]) -> None:
        super().__init__()
        self.stage, self.size, self.spot = stage, size, nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        tokens = self.stage(x)
        extra = tokens.shape[1] - math.prod(self.size)
        placed = self.spot(tokens_to_map(tokens, self.size))
        return torch.cat([tokens[:, :extra], placed.flatten(2).transpose(1, 2)], 1)


def grid(tokens: int) -> tuple[int, int]:
    """Height and width of a square of patches, with or without a class token before it.

    Raises:
        NoMap: the number of tokens fits no square.
    """
    for patches in (tokens, tokens - 1):
        side = math.isqrt(max(0, patches))
        if side > 1 and side * side == patches:
            return side, side
    raise NoMap(f"This model's {tokens} tokens are no square of patches, so that they have no map.")


def tokens_to_map(tokens: Tensor, size: tuple[int, int]) -> Tensor:
    """Tokens (n 1+hw d) as a map (n d h w); those before the last hw (the class token) go."""
    h, w = size
    return tokens[:, tokens.shape[1] - h * w :].transpose(1, 2).unflatten(2, (h, w))


def attention(models: Mapping[str, Classifier], examples: Examples, forget: Tensor) -> Arrays:
    """Maps of all models on `examples` (r), for the true label and for each model's own answer.

    `forget` (r, bool) tells which rows were to be forgotten. Arrays: ids, y, forget (r), and by
    `true` and `predicted` `target/<t>/<model>` (r; -1 for none), `cam/<t>/<model>` (r h w, float16
    in [0, 1]) and `scale/<t>` (r): the logits that 1 stands for, a row's largest over models. A
    map of zeros is one without positive evidence.

    Raises:
        NoMap: a model has no spatial stage.
    """
    arrays = {name: getattr(examples, name).cpu().numpy() for name in ("ids", "y")}
    arrays["forget"] = forget.cpu().numpy()
    x = examples.float().x
    aims = {
        "true": dict.fromkeys(models, examples.y),
        "predicted": {who: answers(model, x) for who, model in models.items()},
    }
    for aim, targets in aims.items():
        raw = {who: grad_cam(model, x, targets[who]).cpu() for who, model in models.items()}
        scaled, scale = one_scale(raw)
        arrays[f"scale/{aim}"] = scale.numpy()
        for who in models:
            arrays[f"target/{aim}/{who}"] = targets[who].cpu().numpy()
            arrays[f"cam/{aim}/{who}"] = scaled[who].half().numpy()
    return arrays


def one_scale(maps: Mapping[str, Tensor]) -> tuple[dict[str, Tensor], Tensor]:
    """Maps (r h w) divided by their row's largest value over all models, and that value (r).

    A scale of its own for each model would make differences of any size look alike.
    """
    top = torch.stack([m.flatten(1).amax(1) for m in maps.values()]).amax(0)
    top = torch.where(top > FLOOR, top, 0)
    safe = torch.where(top > 0, top, torch.inf)[:, None, None]
    return {who: m / safe for who, m in maps.items()}, top


@torch.no_grad()
def answers(model: Classifier, x: Tensor) -> Tensor:
    """The class that each image gets (n); -1 where two share the largest logit."""
    logits = torch.cat([copy.deepcopy(model).eval()(part) for part in x.split(BATCH)])
    return favourite(logits)


def favourite(logits: Tensor) -> Tensor:
    """The class with the largest logit (n); -1 where several share it."""
    best, second = logits.topk(2, 1).values.unbind(1)
    return torch.where(best - second > FLOOR, logits.argmax(1), NOBODY)


def rows(
    y: Tensor,
    forget: Tensor,
    logits: Mapping[str, Tensor],
    *,
    seed: int,
    forget_rows: int = FORGET_ROWS,
    classes: int = CLASSES,
    each: int = EACH,
) -> Tensor:
    """Which of the images to show, by their labels `y` (n): row numbers, forget set first.

    Then come `each` images of the most entangled retained classes. `forget` (n, bool) marks what
    was to be forgotten; `logits` (n k) are those of original, unlearned and, if there is one, gold.
    """
    order = torch.randperm(len(y), generator=torch.Generator().manual_seed(seed))
    gone = order[forget[order]]
    chosen = [_spread(gone, y, forget_rows)]
    for label in entangled(y, forget, logits)[:classes]:
        chosen.append(order[(y == label)[order] & ~forget[order]][:each])
    return torch.cat(chosen)


def _spread(candidates: Tensor, y: Tensor, count: int) -> Tensor:
    """The first `count` candidates, of each of their labels in turn."""
    turn = torch.zeros(len(candidates))
    for label in y[candidates].unique():
        mine = y[candidates] == label
        turn[mine] = torch.arange(int(mine.sum()), dtype=turn.dtype)
    return candidates[turn.argsort(stable=True)[:count]]


def entangled(y: Tensor, forget: Tensor, logits: Mapping[str, Tensor]) -> Sequence[int]:
    """Labels of retained images, those nearest to the forget set first.

    A label is near if gold answers it to forget images; next to that, or where there is no gold,
    if its accuracy changed from original to unlearned.
    """
    said = {who: favourite(z) for who, z in logits.items()}
    sent = said["gold"][forget] if "gold" in said else torch.zeros(0, dtype=torch.long)

    def nearness(label: int) -> tuple[int, float]:
        mine = (y == label) & ~forget
        before, after = ((said[w][mine] == label).float().mean() for w in ("original", "unlearned"))
        return int((sent == label).sum()), float((after - before).abs())

    return sorted(y[~forget].unique().tolist(), key=nearness, reverse=True)
