"""Outputs made by hand: Gaussian classes seen through random nets, without any training."""

from itertools import pairwise

import torch
from torch import Tensor

from core.geometry.etf import simplex_etf
from core.metrics import METRICS
from core.metrics.base import Measured
from core.metrics.outputs import Outputs
from core.metrics.relearning import Relearned

TAPS = ("stem", "stage1", "penultimate")
SETS = ("forget", "retain", "test_forget", "test_retain")
SAMPLED = ("nc1", "nc2_equinorm", "nc2_equiangular", "nc2_max_angle", "nc3", "nc4", "angle_means")
"""Readings of neural collapse that samples have a part in."""


def rng(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def read(name: str, model: Outputs, reference: Outputs | None = None) -> Measured:
    """The metric `name` at the last tap of `model`."""
    return METRICS[name]().measure(model, reference, model.taps[-1], 0)


def outputs(
    model: int = 0,
    *,
    classes: int = 4,
    width: int = 8,
    train: int = 40,
    test: int = 20,
    forget: tuple[int, ...] = (0,),
    instances: int = 0,
    noise: float = 0.7,
    transform: bool = False,
    external: bool = False,
    seconds: float | None = 2.0,
) -> Outputs:
    """What the net with the seed `model` shows of `train` and `test` images a class.

    All models are shown the same images. With `instances`, that many training images are to be
    forgotten instead of the classes `forget`, and `test_forget` is empty, as `observe` has it.
    """
    images = _images(classes, width, train, test, noise, external)
    parts = _instances(images, instances) if instances else _classes(images, forget)
    net = _net(model, width, transform)
    seen = {name: net(x) for name, (x, _, _) in parts.items()}
    last = (*TAPS, "transform")[-1 if transform else -2]
    x, y, _ = (torch.cat(column) for column in zip(parts["forget"], parts["retain"], strict=True))
    z = net(x)[last]
    means = torch.stack([z[y == c].mean(0) for c in range(classes)])
    head = means - means.mean(0)
    bias = -head.square().sum(1) / 2 - head @ means.mean(0)
    empty = {tap: torch.zeros(0, 1) for tap in seen["forget"]}
    return Outputs(
        taps=tuple(seen["forget"]),
        features={name: f if len(parts[name][1]) else empty for name, f in seen.items()},
        logits={name: f[last] @ head.T + bias for name, f in seen.items()},
        y={name: y for name, (_, y, _) in parts.items()},
        ids={name: ids for name, (_, _, ids) in parts.items()},
        head=head,
        bias=bias,
        forget_classes=() if instances else forget,
        seconds=seconds,
        relearned=None if instances else relearned(3 + model),
    )


def relearned(steps: int, bar: float = 0.9) -> Relearned:
    """A model that came back at the last of so many steps."""
    seen = tuple(range(steps + 1))
    return Relearned(seen, tuple(float(step == steps) for step in seen), bar, 20)


Rows = tuple[Tensor, Tensor, Tensor]


def _images(
    classes: int, width: int, train: int, test: int, noise: float, external: bool
) -> dict[str, Rows]:
    draw = rng(99)
    centres = 1.5 * torch.randn(classes, width, generator=draw)
    made: dict[str, Rows] = {}
    start = 0
    for name, count in (("train", train), ("test", test), ("external", test if external else 0)):
        y = torch.arange(classes).repeat_interleave(count)
        x = centres[y] + noise * torch.randn(len(y), width, generator=draw)
        made[name] = (x, y, torch.arange(start, start + len(y)))
        start += len(y)
    return made


def _classes(images: dict[str, Rows], forget: tuple[int, ...]) -> dict[str, Rows]:
    parts: dict[str, Rows] = {}
    for name, (x, y, ids) in images.items():
        gone, prefix = torch.isin(y, torch.tensor(forget)), "" if name == "train" else f"{name}_"
        if len(y):
            parts[f"{prefix}forget"] = (x[gone], y[gone], ids[gone])
            parts[f"{prefix}retain"] = (x[~gone], y[~gone], ids[~gone])
    return parts


def _instances(images: dict[str, Rows], count: int) -> dict[str, Rows]:
    x, y, ids = images["train"]
    gone = torch.zeros(len(y), dtype=torch.bool)
    gone[torch.randperm(len(y), generator=rng(count))[:count]] = True
    nothing = tuple(t[:0] for t in images["test"])
    return {
        "forget": (x[gone], y[gone], ids[gone]),
        "retain": (x[~gone], y[~gone], ids[~gone]),
        "test_forget": nothing,  # pyright: ignore[reportReturnType]
        "test_retain": images["test"],
    }


class _net:  # noqa: N801 - reads as a function
    """Two random layers of ReLU; the last tap is non-negative, as a ReLU net's is."""

    def __init__(self, seed: int, width: int, transform: bool) -> None:
        draw = rng(seed)
        sizes = (width, width + 2, width + 4, width)
        self.layers = [torch.randn(a, b, generator=draw) / a**0.5 for a, b in pairwise(sizes)]
        self.turn = torch.linalg.qr(torch.randn(width, width, generator=draw))[0]
        self.transform = transform

    def __call__(self, x: Tensor) -> dict[str, Tensor]:
        seen = {}
        for tap, layer in zip(TAPS, self.layers, strict=True):
            x = (x @ layer).relu()
            seen[tap] = x
        if self.transform:
            seen["transform"] = x @ self.turn
        return seen


def probed(forget: Tensor, rest: Tensor) -> Outputs:
    """A model that shows these features of its test sets."""
    sets = {"test_forget": forget, "test_retain": rest}
    y = {name: torch.full((len(x),), i) for i, (name, x) in enumerate(sets.items())}
    features = {name: {"penultimate": x.float()} for name, x in sets.items()}
    head = torch.zeros(2, forget.shape[1])
    return Outputs(("penultimate",), features, {}, y, y, head, head[:, 0], (0,))


def gaussians(shift: float, n: int = 100, m: int = 400, d: int = 8, seed: int = 0) -> Outputs:
    """Test sets from two isotropic Gaussians, `shift` deviations apart along every axis."""
    draw = rng(seed)
    return probed(shift + torch.randn(n, d, generator=draw), torch.randn(m, d, generator=draw))


def trained(
    z: Tensor, y: Tensor, head: Tensor, bias: Tensor | None = None, gone: int = 0
) -> Outputs:
    """A model with these training features (n d), labels and head; class `gone` is to go."""
    bias = torch.zeros(len(head)) if bias is None else bias
    rows = {"forget": y == gone, "retain": y != gone}
    logits = z.double() @ head.T.double() + bias
    return Outputs(
        taps=("penultimate",),
        features={n: {"penultimate": z[r]} for n, r in rows.items()},
        logits={n: logits[r] for n, r in rows.items()},
        y={n: y[r] for n, r in rows.items()},
        ids={n: r.nonzero().flatten() for n, r in rows.items()},
        head=head,
        bias=bias,
        forget_classes=(gone,),
    )


def cloud(k: int = 6, d: int = 9, n: int = 40, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """Features of `n` samples a class about random means, labels, and a head of its own."""
    draw = rng(seed)
    y = torch.arange(k).repeat_interleave(n)
    means = 2 * torch.randn(k, d, generator=draw, dtype=torch.float64)
    z = means[y] + torch.randn(k * n, d, generator=draw, dtype=torch.float64)
    return z, y, torch.randn(k, d, generator=draw, dtype=torch.float64)


def collapsed(k: int = 10, d: int = 64, n: int = 5) -> Outputs:
    """A model whose training features and head are exactly collapsed, and off the origin."""
    vertices = simplex_etf(k, d, rng())
    y = torch.arange(k).repeat_interleave(n)
    return trained(3 * vertices[y] + 0.5, y, 2 * vertices)
