"""The attack behind rMIA: can a linear attacker tell training images by their features?"""

from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
import torch

from core.metrics.base import Unavailable
from core.metrics.outputs import Outputs
from core.metrics.similarity import rows

__support__ = True

FOLDS = 5


@dataclass(frozen=True, eq=False)
class Attack:
    """Whom the attacker calls a member (bool, in the order of ids)."""

    members: np.ndarray
    """Of the forget set."""
    others: np.ndarray
    """Of unseen images: of the forget set's kind; of any class for an instance target."""


_done: WeakKeyDictionary[Outputs, dict[tuple[str, int], Attack]] = WeakKeyDictionary()


def attack(model: Outputs, tap: str, seed: int) -> Attack:
    """Logistic regression on standardised features, train rows against test rows, in five folds.

    Folds are stratified by class and membership, each row is judged by the attacker that did not
    see it, and each class has as many members as non-members, so that the class itself tells
    nothing. `rmia` and `rmia_fpr` share one attack a model.

    Raises:
        Unavailable: too few rows, or features that are constant or not finite.
    """
    done = _done.setdefault(model, {})
    if (tap, seed) not in done:
        done[tap, seed] = _attack(model, tap, seed)
    return done[tap, seed]


def _attack(model: Outputs, tap: str, seed: int) -> Attack:
    x, y, member, forget = _stack(model, tap)
    rng = np.random.default_rng(seed)
    chosen, fold = _draw(y, member, forget, rng)
    if len(chosen) < 2 * FOLDS:
        raise Unavailable(f"five folds need at least {FOLDS} members and as many unseen images")
    x, y, member, forget = x[chosen], y[chosen], member[chosen], forget[chosen]
    if np.ptp(x, axis=0).max() <= 1e-7 * np.abs(x).max():
        raise Unavailable("features are constant")
    called = _called(x, member, fold)
    kin = ~member & forget  # unseen images of the forget set's kind; single images have none
    return Attack(called[member & forget], called[kin if kin.any() else ~member])


def _stack(model: Outputs, tap: str) -> tuple[np.ndarray, ...]:
    """Features, labels, who is a member, who is of the forget set's kind, seen or not; each part
    in order of ids.
    """
    parts: list[tuple[np.ndarray, ...]] = []
    for name in ("forget", "retain", "test_forget", "test_retain"):
        if name not in model.y or not len(model.y[name]):
            continue
        order = model.ids[name].argsort()
        x = rows(model, tap, name)[order].double()
        if not torch.isfinite(x).all():
            raise Unavailable("features are not finite")
        y = model.y[name][order].numpy()
        flags = [np.full(len(y), f) for f in (not name.startswith("test"), name.endswith("forget"))]
        parts.append((x.numpy(), y, *flags))
    if not parts:
        raise Unavailable("there is no sample")
    return tuple(np.concatenate(column) for column in zip(*parts, strict=True))


def _draw(
    y: np.ndarray, member: np.ndarray, forget: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Rows, as many members as others of each class (the forget set's first), and their folds.

    A subclass counts as a class of its own: it must not tell who is a member either.
    """
    chosen: list[np.ndarray] = []
    kinds = 2 * y + (forget & (forget & ~member).any())
    for kind in np.unique(kinds):
        ins = rng.permutation(np.flatnonzero((kinds == kind) & member))
        outs = rng.permutation(np.flatnonzero((kinds == kind) & ~member))
        ins = ins[np.argsort(~forget[ins], kind="stable")]
        count = min(len(ins), len(outs))
        # Shuffled again: the forget set's rows stand first and must meet all folds.
        chosen += [rng.permutation(ins[:count]), outs[:count]]
    rows_, fold = np.concatenate(chosen), np.arange(sum(map(len, chosen))) % FOLDS
    order = np.argsort(rows_)
    return rows_[order], fold[order]


def _called(x: np.ndarray, member: np.ndarray, fold: np.ndarray) -> np.ndarray:
    """Whom the attacker that did not see it calls a member (n, bool)."""
    from sklearn.linear_model import LogisticRegression

    called = np.zeros(len(x), dtype=bool)
    # Few features, many rows: Newton steps are ten times faster here than the default solver.
    fit = LogisticRegression(class_weight="balanced", max_iter=1000, solver="newton-cholesky")
    for k in range(FOLDS):
        seen = fold != k
        mean, std = x[seen].mean(0), x[seen].std(0)
        z = (x - mean) / np.where(std > 1e-12, std, 1.0)
        called[~seen] = fit.fit(z[seen], member[seen]).predict(z[~seen])
    return called
