"""Proxy signal: what a pair of proxies says should change in a network's answer, and how far."""

import torch
from torch import Tensor

__support__ = True

ABSENT, TINY = -100.0, 1e-30
"""Nats by which a class falls that the retained proxy never saw; a share of zero."""
LEAST, CLOSE, NOTHING = 1e-4, 1e-4, 1e-12
"""The first step that is tried, the width to which the last one is found, and what counts as 0."""


def signal(initial: Tensor, retained: Tensor) -> Tensor:
    """Delta M (n k): log-posterior of the retained proxy less that of the initial one.

    A class that only the initial proxy knows falls by `ABSENT`, one that neither knows stays.
    """
    fallen = torch.where(initial.isneginf(), 0.0, ABSENT)
    return torch.where(retained.isneginf(), fallen, retained - initial)


def excess(log_p: Tensor, delta: Tensor, step: float) -> float:
    """h(step): mean log of the sum of p e^(step delta), in nats; h(0) = 0 and h is convex."""
    return float((log_p + step * delta).logsumexp(1).mean())


def largest_step(log_p: Tensor, delta: Tensor, limit: float) -> float:
    """eta_max: the largest step in [0, limit] with h <= 0, to within 1e-4; 0 if not admissible.

    As long as h <= 0, the target is nearer the retained posterior by step * `advantage`. The
    search keeps the side where h <= 0, so that this holds for what it returns.
    """
    if float(delta.abs().max()) < NOTHING or excess(log_p, delta, LEAST) > 0:
        return 0.0
    if excess(log_p, delta, limit) <= NOTHING:  # rounding, where the proxy is perfect
        return limit
    low, high = LEAST, limit
    while high - low > CLOSE:
        middle = (low + high) / 2
        low, high = (middle, high) if excess(log_p, delta, middle) <= 0 else (low, middle)
    return low


def advantage(delta: Tensor, y: Tensor) -> float:
    """A: mean Delta M at the labels `y` (n) of retained rows, in nats.

    Over draws from a retained posterior it is how much nearer the retained proxy is to it than
    the initial one.
    """
    return float(delta.gather(1, y[:, None]).mean())


def tilted(log_p: Tensor, delta: Tensor, step: float) -> Tensor:
    """The target (n k): probabilities in proportion to p e^(step delta)."""
    return (log_p + step * delta).softmax(1)


def dirac(log_p: Tensor, y: Tensor, gone: Tensor) -> Tensor:
    """The target (n k) of DIR-2C, which fits nothing and knows the training rows alone.

    A row's probabilities are split by each class's retained and forgotten share. A forgotten row
    loses its own class from the forgotten half, and with it every class of which nothing is
    retained. Each half is scaled to its share in the row's class, and both are added. Shares
    of zero count as very small ones, so that what is left of the forgotten half has a meaning.
    """
    k = log_p.shape[1]
    of_all, of_gone = (torch.bincount(labels, minlength=k).to(log_p) for labels in (y, y[gone]))
    lost = of_gone / of_all.clamp_min(1)
    kept_half = log_p + (1 - lost).log()
    lost_half = (log_p + lost.clamp_min(TINY).log()).masked_fill(lost == 1, -torch.inf)
    rows = gone.nonzero().flatten()
    lost_half[rows, y[rows]] = -torch.inf
    share = lost[y][:, None]
    return (1 - share) * kept_half.softmax(1) + share * lost_half.softmax(1)
