"""Probing: what a small classifier can still read out of frozen features of the test set."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from core.metrics.base import Measured, Unavailable, mean_of
from core.metrics.memo import digest, once
from core.metrics.outputs import Outputs

__support__ = True

SPLITS = 5
TESTED = 0.3
"""Share of either side that a split tests."""
LEAST = 10
"""Samples a side below which a split would test fewer than three."""


@dataclass(frozen=True, eq=False)
class Trials:
    """Train and test parts of all splits (s n d, s m d, float64), standardised split by split."""

    train: Tensor
    test: Tensor
    y: Tensor
    """1 for the forget class, 0 for the rest (n); the forget class comes first in every split."""
    seed: int

    @property
    def sides(self) -> tuple[int, int]:
        """Training rows of the forget class and of the rest."""
        forget = int(self.y.sum())
        return forget, len(self.y) - forget


Probe = Callable[[Trials], Tensor]
"""Fits on `train` and scores `test` (s m): above 0 it says "forget class"."""


@dataclass(frozen=True, eq=False)
class Answers:
    """What a probe said of the rows that were tested (s m each)."""

    scores: Tensor
    rows: Tensor
    """Row numbers in test_forget (below `forget`), then test_retain."""
    forget: int
    rest: int

    def average(self, values: Tensor) -> dict[str, Tensor]:
        """`values` (s m) averaged over the splits that tested a row, for either side."""
        n = self.forget + self.rest
        flat = self.rows.flatten()
        sums = torch.zeros(n, dtype=torch.float64).index_add_(0, flat, values.double().flatten())
        mean = sums / torch.bincount(flat, minlength=n)
        return {"forget": mean[: self.forget], "rest": mean[self.forget :]}


def ask(model: Outputs, tap: str, seed: int, probe: Probe) -> Answers:
    """The probe's decision values on all rows; features that were seen before are not fitted again.

    Raises:
        Unavailable: a side is too small, or a feature is not finite.
    """
    forget, rest = len(model.y["test_forget"]), len(model.y["test_retain"])
    if min(forget, rest) < LEAST:
        raise Unavailable(
            f"a probe needs {LEAST} test samples of the forget class and of the rest, "
            f"and there are {forget} and {rest}"
        )
    x = model.at(tap, "test_forget", "test_retain")
    if not torch.isfinite(x).all():
        raise Unavailable("features are not finite")
    trains, tests = splits(forget, rest, seed)

    def fit() -> Tensor:
        y = (trains[0] < forget).double()
        return probe(Trials(*standardise(x.double(), trains, tests), y, seed))

    name = f"{probe.__module__}.{probe.__name__}"
    return Answers(once((name, digest(x), forget, rest, seed), fit), tests, forget, rest)


def balanced(model: Outputs, tap: str, seed: int, probe: Probe) -> Measured:
    """Balanced accuracy: the mean over both sides of the share that the probe puts on its side.

    Differs: the released audit draws one split. Here the test parts of five rotate, so that each
    row is tested once or twice; its hits are averaged first, so that rows weigh the same.
    """
    answers = ask(model, tap, seed, probe)
    hits = (answers.scores > 0) == (answers.rows < answers.forget)
    return mean_of(answers.average(hits), seed)


def splits(forget: int, rest: int, seed: int) -> tuple[Tensor, Tensor]:
    """Rows to train on (s n) and to test on (s m): stratified, the same for every model."""
    rng = torch.Generator().manual_seed(seed)
    sides = [torch.randperm(forget, generator=rng), forget + torch.randperm(rest, generator=rng)]
    trains, tests = [], []
    for k in range(SPLITS):
        turned = [rows.roll(-round(k * len(rows) / SPLITS)) for rows in sides]
        sizes = [round(TESTED * len(rows)) for rows in sides]
        tests.append(torch.cat([rows[:m] for rows, m in zip(turned, sizes, strict=True)]))
        trains.append(torch.cat([rows[m:] for rows, m in zip(turned, sizes, strict=True)]))
    return torch.stack(trains), torch.stack(tests)


def standardise(x: Tensor, trains: Tensor, tests: Tensor) -> tuple[Tensor, Tensor]:
    """Mean 0 and variance 1 on each train part; a feature that is constant there becomes 0."""
    return rescale(x[trains], x[tests])


def rescale(train: Tensor, test: Tensor) -> tuple[Tensor, Tensor]:
    """Both parts (s n d, s m d) by the mean and the deviation of `train`."""
    mean = train.mean(1, keepdim=True)
    std = train.std(1, keepdim=True, correction=0)
    # A few units in the last place of float32 are rounding, not information.
    constant = std <= 1e-6 * mean.abs()
    scale = torch.where(constant, 0.0, 1 / std.where(~constant, torch.ones_like(std)))
    return (train - mean) * scale, (test - mean) * scale


def linear(trials: Trials) -> Tensor:
    """Logistic regression, L2 with C = 1, by L-BFGS."""
    from sklearn.linear_model import LogisticRegression

    scores = []
    for train, test in zip(trials.train, trials.test, strict=True):
        fitted = LogisticRegression(C=1.0, max_iter=1000).fit(train.numpy(), trials.y.numpy())
        scores.append(torch.from_numpy(fitted.decision_function(test.numpy())))
    return torch.stack(scores)
