"""Time CKA from d x d moments against CKA from n x n Gram matrices, on the same numbers.

Run from the repository root: `python assets/scripts/benchmark_cka.py`. Takes about a minute.
"""

import sys
import time
from collections.abc import Callable

import torch
from torch import Tensor

from core.geometry.align import cka, cka_gram

N, D = 5000, 512
LEAST, MOST = 20, 1e-8
"""The ratio that must be reached, and the difference that is allowed."""


def gram_by_means(x: Tensor, y: Tensor) -> float:
    """CKA from n x n matrices centred by subtracting means: the Gram form without waste."""
    k, l = x @ x.T, y @ y.T  # noqa: E741 - the papers' letters
    for m in (k, l):
        means = m.mean(0)
        m.sub_(means).sub_(means[:, None]).add_(means.mean())
    return float(k.flatten() @ l.flatten() / (k.norm() * l.norm()))


def clock(f: Callable[[Tensor, Tensor], float], x: Tensor, y: Tensor, times: int) -> tuple:
    """The value and the shortest of `times` runs, in seconds."""
    best, value = float("inf"), 0.0
    for _ in range(times):
        start = time.perf_counter()
        value = f(x, y)
        best = min(best, time.perf_counter() - start)
    return value, best


def main() -> int:
    torch.set_num_threads(1)  # threads that wait for one another on a busy machine time nothing
    rng = torch.Generator().manual_seed(0)
    x = torch.randn(N, D, generator=rng, dtype=torch.float64)
    y = x.roll(1, 1) + torch.randn(N, D, generator=rng, dtype=torch.float64).relu()
    fast, fast_s = clock(cka, x, y, 5)
    means, means_s = clock(gram_by_means, x, y, 2)
    gram, gram_s = clock(cka_gram, x, y, 1)
    ratio, difference = gram_s / fast_s, abs(gram - fast)
    sys.stdout.write(
        f"n = {N}, d = {D}, float64, one thread\n"
        f"feature form                   {fast_s:8.3f} s  CKA {fast:.12f}\n"
        f"Gram form, centred by means    {means_s:8.3f} s  CKA {means:.12f}\n"
        f"Gram form, as defined (H K H)  {gram_s:8.3f} s  CKA {gram:.12f}\n"
        f"ratio      {ratio:.1f} (must be at least {LEAST}); by means {means_s / fast_s:.1f}\n"
        f"difference {difference:.1e} (must be at most {MOST:.0e})\n"
    )
    return 0 if ratio >= LEAST and difference <= MOST else 1


if __name__ == "__main__":
    sys.exit(main())
