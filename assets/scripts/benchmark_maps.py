"""Seconds that each map takes, in a fresh process each: imports and compilation included.

Three models of 2,000 rows and 64 features, drawn to look like a collapsed network's. UMAP is
timed twice: with an empty compilation cache, and with the one that the first process left.

    python assets/scripts/benchmark_maps.py [--rows N] [--width D]
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch

CLASSES, SPREAD = 10, 0.25
"""Noise in units of the distance of class means from the origin."""


def drawn(rows: int, width: int, seed: int) -> dict[str, torch.Tensor]:
    """Features of an original, of an unlearned model near it, and of a rotated gold."""
    rng = torch.Generator().manual_seed(seed)
    means = torch.randn(CLASSES, width, generator=rng).relu()
    labels = torch.randint(CLASSES, (rows,), generator=rng)

    def noise() -> torch.Tensor:
        return SPREAD * torch.randn(rows, width, generator=rng)

    original = (means[labels] + noise()).relu()
    turn = torch.linalg.qr(torch.randn(width, width, generator=rng)).Q
    gold = (means[labels] + noise()).relu() @ turn
    return {"original": original, "unlearned": (original + 0.2 * noise()).relu(), "gold": gold}


def measure(method: str, rows: int, width: int) -> None:
    """Print wall and processor seconds of one map."""
    features = drawn(rows, width, seed=0)
    wall, busy = time.perf_counter(), time.process_time()
    from core.geometry.project import joint

    joint(method, features)
    wall, busy = time.perf_counter() - wall, time.process_time() - busy
    print(f"{method:5} {wall:6.1f} s, {busy:6.1f} s of processor time", flush=True)  # noqa: T201


if __name__ == "__main__":
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--rows", type=int, default=2000)
    asked.add_argument("--width", type=int, default=64)
    asked.add_argument("--one", help=argparse.SUPPRESS)
    args = asked.parse_args()
    sys.path.insert(0, str(Path(__file__).parents[2]))
    if args.one:
        measure(args.one, args.rows, args.width)
        sys.exit()
    with tempfile.TemporaryDirectory() as folder:
        fresh = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"}
        fresh["FORGETSCOPE_HOME"] = folder
        for name in ("pca", "tsne", "umap", "umap"):
            again = [sys.executable, __file__, "--one", name]
            size = ["--rows", str(args.rows), "--width", str(args.width)]
            subprocess.run([*again, *size], env=fresh, check=True)
