"""The attack behind SVC-MIA: does one number of an answer tell training images from unseen ones?"""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from core.metrics.base import Measured, Unavailable, mean_of
from core.metrics.divergence import probabilities
from core.metrics.memo import digest, once
from core.metrics.outputs import Outputs

__support__ = True

TRAINED = 500
"""Most members, and most others, that the attacker is trained on: kernels grow with the square."""
LEAST = 5
"""Members, and others, below which an attacker would learn nothing."""

Statistic = Callable[[Tensor, Tensor], Tensor]
"""Probabilities (n k) and labels (n) to one number a sample (n)."""


def called(model: Outputs, statistic: Statistic, seed: int) -> Tensor:
    """Which forgotten training images the attacker takes for members (n, 0 or 1).

    A support vector classifier (radial kernel, C 3) is trained on the statistic of as many
    retained training images (members) as unseen retained ones (others).

    Raises:
        Unavailable: too few samples, answers that are not finite, or all alike.
    """
    members, others = (rows(model, name, seed) for name in ("retain", "test_retain"))
    count = min(len(members), len(others), TRAINED)
    if count < LEAST or not len(model.y["forget"]):
        raise Unavailable(
            f"the attacker needs {LEAST} retained images of either kind, and a forget set"
        )
    seen = statistic(*answers(model, "retain", members[:count]))
    unseen = statistic(*answers(model, "test_retain", others[:count]))
    known = torch.cat([seen, unseen])[:, None]
    if float(known.max() - known.min()) < 1e-12:
        raise Unavailable("all answers are alike, so there is nothing to tell members by")
    asked = statistic(*answers(model, "forget"))[:, None]
    key = ("svc", digest(known), digest(asked))
    return once(key, lambda: torch.from_numpy(_attack(known.numpy(), asked.numpy())).double())


def svc_mia(model: Outputs, statistic: Statistic, seed: int) -> Measured:
    """The share of the forget set that the attacker takes for members.

    Raises:
        Unavailable: as `called`.
    """
    return mean_of({"forget": called(model, statistic, seed)}, seed)


def rows(model: Outputs, name: str, seed: int) -> Tensor:
    """Row numbers of the set, shuffled by id: the same images whatever the order of the rows."""
    ids = model.ids[name] if name in model.ids else torch.zeros(0)
    order = torch.randperm(len(ids), generator=torch.Generator().manual_seed(seed))
    return ids.argsort()[order]


def answers(model: Outputs, name: str, at: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Probabilities (n k) and labels (n) of the set, or of its rows `at`.

    Raises:
        Unavailable: answers that are not finite.
    """
    logits, y = model.logits[name], model.y[name]
    if at is not None:
        logits, y = logits[at], y[at]
    p = probabilities(logits)
    if not torch.isfinite(p).all():
        raise Unavailable("the answers are not finite")
    return p, y


def _attack(known: np.ndarray, asked: np.ndarray) -> np.ndarray:
    from sklearn.svm import SVC

    member = np.arange(len(known)) < len(known) // 2
    return SVC(C=3, gamma="auto", kernel="rbf").fit(known, member).predict(asked)
