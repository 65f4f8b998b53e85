"""Losses shared by several methods."""

import torch
from torch import Tensor
from torch.nn.functional import kl_div, log_softmax

from core.data.targets import ForgetClasses, ForgetTarget


def kl(target: Tensor, logits: Tensor) -> Tensor:
    """KL(target || softmax(logits)) in nats, mean over the batch; a row of `target` sums to 1."""
    return kl_div(log_softmax(logits, 1), target, reduction="batchmean")


def without(logits: Tensor, labels: Tensor) -> Tensor:
    """Probabilities (n k) of `logits` with each row's classes in `labels` (n, or n m) at zero."""
    gone = torch.zeros_like(logits, dtype=torch.bool)
    gone.scatter_(1, labels.view(len(labels), -1), True)
    return logits.masked_fill(gone, -torch.inf).softmax(1)


def log_odds(logits: Tensor, y: Tensor) -> Tensor:
    """log p / (1 - p) of the true class (n)."""
    own = torch.zeros_like(logits, dtype=torch.bool).scatter_(1, y[:, None], True)
    return logits[own] - logits.masked_fill(own, -torch.inf).logsumexp(1)


def gone(target: ForgetTarget, y: Tensor) -> Tensor:
    """What no forgotten image with label `y` (n) may be called again (n m).

    Every forgotten class, or mass would move from one forgotten class to another; for single
    images, the image's own class.
    """
    if isinstance(target, ForgetClasses):
        return torch.tensor(target.labels, device=y.device).repeat(len(y), 1)
    return y[:, None]
