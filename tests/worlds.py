"""Worlds: small data and models trained on them, made once and shared by the tests."""

import copy
from dataclasses import replace
from functools import cache

import torch
from torch import Tensor, nn

from core.data.examples import Dataset, Examples, number
from core.data.split import Split, split
from core.data.targets import ForgetTarget, parse
from core.models import MODELS
from core.models.classifier import Classifier
from core.models.training import Training
from core.optim import fit

CLASSES = ("zero", "one", "two", "three", "four", "five")
TRAINING = Training(epochs=6, lr=0.1, batch=64, flip=False)
TRAIN, TEST = 80, 50
"""Images of each class."""


@cache
def data() -> Dataset:
    """Six classes of 3x8x8 noise, each about a pattern of its own and a common one.

    Every other image of a class is of its one subclass, the others of its other one.
    """
    rng = torch.Generator().manual_seed(0)
    k = len(CLASSES)
    patterns = torch.randn(k, 3, 8, 8, generator=rng) + torch.randn(3, 8, 8, generator=rng)
    y = torch.arange(k).repeat(TRAIN + TEST)
    x = 0.65 * patterns[y] + 1.6 * torch.randn(len(y), 3, 8, 8, generator=rng)
    x = (128 + 25 * x).clamp(0, 255).to(torch.uint8)
    n = k * TRAIN
    return Dataset(
        name="tiny",
        classes=CLASSES,
        train=number(x[:n], y[:n], 0),
        test=number(x[n:], y[n:], n),
        licence="none",
        origin="Drawn from a fixed seed.",
        subclasses=tuple(f"{name} {half}" for name in CLASSES for half in ("even", "odd")),
        fine=2 * y + torch.arange(len(y)) // k % 2,
    )


def target(text: str = "class:two") -> ForgetTarget:
    return parse(text, data())


@cache
def parts(text: str = "class:two") -> Split:
    """The split of `data()` for the target `text`; a fifth of the retain set is held out."""
    return split(data(), target(text), val=0.2)


def blank(seed: int = 0, model: str = "resnet_mini") -> Classifier:
    """An untrained model for `data()`."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return MODELS[model]().build(data().shape, len(CLASSES), *data().moments)


@cache
def _trained(text: str, seed: int) -> Classifier:
    model = blank(seed)
    examples = parts(text).retain if text else data().train
    fit(model, examples, TRAINING, torch.Generator().manual_seed(seed))
    return model


def original(seed: int = 0) -> Classifier:
    """A copy of a model trained on all of `data().train`, in eval mode."""
    return copy.deepcopy(_trained("", seed))


def gold(text: str = "class:two", seed: int = 1) -> Classifier:
    """A copy of a model trained on the retain set alone, in eval mode."""
    return copy.deepcopy(_trained(text, seed))


def garbled(examples: Examples, seed: int = 9) -> Examples:
    """As many examples with the same ids, and nothing else in common."""
    rng = torch.Generator().manual_seed(seed)
    x = torch.randint(0, 256, examples.x.shape, generator=rng, dtype=torch.uint8)
    y = torch.randint(0, len(CLASSES), examples.y.shape, generator=rng)
    return replace(examples, x=x, y=y)


@torch.inference_mode()
def logits(model: Classifier, examples: Examples) -> torch.Tensor:
    """All logits (n k), in eval mode."""
    model.eval()
    return torch.cat([model(b.x) for b in examples.ordered(500)])


def accuracy(model: Classifier, examples: Examples) -> float:
    """Share that `model` labels rightly, in eval mode."""
    return float((logits(model, examples).argmax(1) == examples.y).float().mean())


K, SIDE = 5, 16
"""Classes of `network`, and pixels of an edge of `pictures`."""
MOMENTS = torch.full((1,), 0.5), torch.full((1,), 0.25)


def network(seed: int = 0) -> Classifier:
    """A ResNet whose batch norms have seen data, with strong evidence of both signs."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = MODELS["resnet_mini"]().build((1, SIDE, SIDE), K, *MOMENTS)
        model.train()
        for _ in range(5):
            model(torch.rand(32, 1, SIDE, SIDE))
        nn.init.normal_(model.head.weight)
    return model.eval()


def pictures(n: int = 6) -> Tensor:
    """Noise (n 1 SIDE SIDE) for `network`."""
    return torch.rand(n, 1, SIDE, SIDE, generator=torch.Generator().manual_seed(1))
