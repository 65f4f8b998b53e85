"""Collapsing: a quantity of neural collapse on the training sets, with its interval."""

from collections.abc import Callable

import torch
from torch import Tensor

from core.geometry.collapse import ClassMeans, Undefined, class_means
from core.metrics.base import Measured, Unavailable
from core.metrics.outputs import Outputs
from core.metrics.spread import linearised

__support__ = True

Quantity = Callable[[Tensor, ClassMeans], Tensor]
"""Features (n d) and their class means to a number."""


def training(model: Outputs, tap: str) -> tuple[Tensor, Tensor]:
    """Features (n d) and labels (n) of the forget set and of what was drawn of the retain set.

    Raises:
        Unavailable: there is no sample.
    """
    sets = [name for name in ("forget", "retain") if len(model.y[name])]
    if not sets:
        raise Unavailable("there is no training sample")
    return model.at(tap, *sets), model.labels(*sets)


def collapse(
    model: Outputs, tap: str, seed: int, quantity: Quantity, low: float, high: float
) -> Measured:
    """`quantity` on the training sets, cut to [low, high] in its interval.

    A sample's influence is the derivative by its weight (the infinitesimal jackknife, Jaeckel
    1972), one backward pass for all of them; samples are grouped by class.

    Raises:
        Unavailable: the quantity is not defined here, and why.
    """
    z, y = training(model, tap)
    # Outputs are inference tensors and the caller may be in inference mode; this needs a gradient.
    with torch.inference_mode(False), torch.enable_grad():
        z, y = z.double().clone(), y.clone()
        weights = torch.ones(len(z), dtype=torch.float64, requires_grad=True)
        try:
            found = class_means(z, y, len(model.head), weights)
            value = quantity(z, found)
        except Undefined as why:
            raise Unavailable(str(why)) from None
        (slope,) = torch.autograd.grad(value, weights)
    # A deviation of exactly 0 has a corner there and no derivative.
    slope = slope.nan_to_num(0.0, 0.0, 0.0)
    sway = {str(c): slope[y == c] * (y == c).sum() for c in found.classes}
    return linearised(float(value.detach()), sway, seed, low, high)
