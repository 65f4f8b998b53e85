"""Toys: float64 models and projections whose features and heads are known exactly."""

import torch
from torch import nn

from core.data.examples import Examples
from core.data.split import Split
from core.data.targets import ForgetClasses
from core.geometry.etf import simplex_etf
from core.models.classifier import Classifier
from core.models.projection import Projection

EXACT = {"atol": 1e-12, "rtol": 0}  # float64, some hundred roundings
WIDTH = 16


def rng(seed=0):
    return torch.Generator().manual_seed(seed)


def draw(*shape, seed=0):
    return torch.randn(*shape, dtype=torch.float64, generator=rng(seed))


def frame(classes, width=WIDTH):
    return simplex_etf(classes, width, rng())


def toy(features, head, bias=None):
    """A float64 model on one-hot images: class c has the features `features[c]` exactly."""
    classes, width = features.shape
    linear = nn.Linear(classes, width, bias=False).double()
    moments = torch.zeros(1), torch.ones(1)
    body = {"flat": nn.Flatten(), "linear": linear}
    model = Classifier(body, width, len(head), *moments).double().eval()
    with torch.no_grad():
        linear.weight.copy_(features.T)
        model.head.weight.copy_(head)
        model.head.bias.zero_() if bias is None else model.head.bias.copy_(bias)
    return model


def one_hot(classes, each=4):
    """Split of one-hot images; the last row of a class's images is its test image."""
    y = torch.arange(classes).repeat_interleave(each)
    x = (255 * torch.eye(classes)[y]).to(torch.uint8).view(len(y), 1, 1, classes)
    return Examples(x, y, torch.arange(len(y)))


def goal(*labels):
    return ForgetClasses(labels, tuple(f"class {label}" for label in labels))


def parts(examples, *labels):
    gone, none = torch.isin(examples.y, torch.tensor(labels)), examples[:0]
    return Split(examples[gone], examples[~gone], none, none, none)


def ask(method, model, *labels, **rest):
    classes = model.body["linear"].in_features
    return method(model, parts(one_hot(classes), *labels), goal(*labels), **rest)


def cut(model):
    """The projection that the model carries."""
    assert isinstance(model.transform, Projection)
    return model.transform


def learnt(model):
    """What the toy's body gives for each class (k d)."""
    return model.state_dict()["body.linear.weight"].T


def matrix(projection):
    return projection(torch.eye(projection.basis.shape[1], dtype=torch.float64))
