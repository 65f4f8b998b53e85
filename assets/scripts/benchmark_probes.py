"""Time all probes of an audit: three models, every tap, values and intervals.

Features come from the shipped models of `fashion` where there are three (an original and golds
that forgot one class), else from Gaussians of the same sizes. Run from the repository root:

    python assets/scripts/benchmark_probes.py [--synthetic]
"""

import argparse
import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import torch

from core import weights
from core.data import load
from core.data.split import split
from core.data.targets import parse
from core.devices import one_thread
from core.metrics import METRICS
from core.metrics.outputs import Outputs, observe
from core.models import MODELS

FOLDER = Path(__file__).parents[1] / "weights"
PROBES = ("probe_linear", "probe_linear_auroc", "probe_norm", "probe_mlp", "probe_knn")
WIDTHS = {"stem": 16, "stage1": 16, "stage2": 32, "penultimate": 64}
SIZES = {"test_forget": 300, "test_retain": 2700}
MODELS_TIMED, BUDGET = 3, 6.0
"""Seconds on two idle cores."""


def shipped() -> list[Outputs]:
    """The original and golds of one target on the test set, as far as they are shipped."""
    about = {p.with_suffix(""): json.loads(p.read_text()) for p in sorted(FOLDER.glob("*.json"))}
    recipes = {
        stem: a["recipe"] for stem, a in about.items() if a["recipe"]["dataset"] == "fashion"
    }
    targets = {r["target"] for r in recipes.values()} - {""}
    if not targets:
        return []
    data, text = load("fashion"), min(targets)
    sets = split(data, parse(text, data))
    parts = {"test_forget": sets.test_forget, "test_retain": sets.test_retain}
    stems = [stem for target in ("", text) for stem, r in recipes.items() if r["target"] == target]
    how = MODELS["resnet_mini"]()
    return [observe(weights.load(s, data, how)[0], parts) for s in stems[:MODELS_TIMED]]


def synthetic(seed: int) -> Outputs:
    """One class in ten, shifted from the rest by half a deviation along every axis."""
    rng = torch.Generator().manual_seed(seed)
    features: Mapping[str, dict] = {
        name: {
            tap: torch.randn(n, d, generator=rng) + 0.5 * (name == "test_forget")
            for tap, d in WIDTHS.items()
        }
        for name, n in SIZES.items()
    }
    labels = {name: torch.full((n,), i) for i, (name, n) in enumerate(SIZES.items())}
    blank = torch.zeros(2, WIDTHS["penultimate"])
    return Outputs(tuple(WIDTHS), features, {}, labels, labels, blank, blank[:, 0], (0,))


def main() -> int:
    ask = argparse.ArgumentParser(description=__doc__)
    ask.add_argument("--synthetic", action="store_true")
    asked = ask.parse_args()
    models = [] if asked.synthetic else shipped()
    kind = "shipped models"
    if len(models) < MODELS_TIMED:
        models, kind = [synthetic(i) for i in range(MODELS_TIMED)], "Gaussians"
    import sklearn.linear_model  # noqa: F401 - its import is paid once a process

    total, used = time.perf_counter(), time.process_time()
    lines = [f"{kind}, one thread; each model's readings, last tap\n"]
    for name in PROBES:
        start = time.perf_counter()
        with one_thread():
            taken = [[METRICS[name]().measure(m, None, tap, 0) for tap in m.taps] for m in models]
        seconds, last = time.perf_counter() - start, [t[-1].value for t in taken]
        lines.append(f"{name:20s} {seconds:6.2f} s   {'  '.join(f'{v:.3f}' for v in last)}\n")
    total, used = time.perf_counter() - total, time.process_time() - used
    lines.append(f"total {total:.2f} s (budget {BUDGET:.0f} s), {used:.2f} s of processor time\n")
    sys.stdout.writelines(lines)
    return 0 if total <= BUDGET else 1


if __name__ == "__main__":
    sys.exit(main())
