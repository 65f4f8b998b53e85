"""Choose defaults: the same twenty trials for every method, on training images alone.

Trial 0 is the method as it stands; the others draw its knobs around that: a knob on a logarithmic
scale within a factor of ten, another within half of its value, a choice evenly. A trial is scored
on images of the training set: those to be forgotten, and a tenth of the others, held out from the
method, by retained accuracy * (1 - forget accuracy), each in [0, 1] (Kodge et al. 2024). The
test set is never looked at. Results are kept in `assets/tuning/fashion.json`, trial by trial, so
that a run goes on where it stopped. Where the defaults missed the aim (forget accuracy of 5 %), or
a trial won by more than five points, that trial's knobs, rounded, became the defaults.

    python assets/scripts/tune.py [--unlearners all] [--trials 20] [--jobs 2]
"""

import argparse
import json
import math
import random
import sys
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import torch

from core.data import load
from core.data.split import split
from core.data.targets import parse
from core.knobs import Knob, Value
from core.metrics.outputs import observe, predicted
from core.model_recipes import ModelRecipe
from core.optim import Diverged
from core.runs import Runs
from core.unlearners import UNLEARNERS

DATASET, MODEL = "fashion", "resnet_mini"
HELD = 0.1
"""Share of the retained training images that no method sees."""
PATIENCE = 60.0
"""Seconds after which a trial has failed: nobody would wait longer for a default."""
FACTOR, SHARE = 10.0, 0.5
FIXED = frozenset({"batch", "batch_forget", "rewind", "distil", "strength", "forget_logits"})
"""Knobs that say what a method is, or how its work is cut up, rather than how well it is set."""

Trial = dict[str, Any]


class TooSlow(Exception):
    """A trial that takes longer than PATIENCE."""


def draw(knob: Knob, rng: random.Random) -> Value:
    """A value near the default."""
    usual, low, high = knob.default, knob.low, knob.high
    if knob.choices:
        return rng.choice(knob.choices)
    if isinstance(usual, bool | str):
        return rng.choice((True, False)) if isinstance(usual, bool) else usual
    least = low if low is not None else -math.inf
    most = high if high is not None else math.inf
    if knob.log and usual > 0:
        found = usual * FACTOR ** rng.uniform(-1, 1)
    else:
        found = usual * (1 + SHARE * rng.uniform(-1, 1))
    found = min(most, max(least, found))
    return round(found) if knob.kind is int else float(f"{found:.3g}")


def settings(name: str, trial: int) -> dict[str, Value]:
    """The knobs of a trial; the same for everyone who asks."""
    rng = random.Random(f"{name} {trial}")
    knobs = UNLEARNERS[name].knobs()
    return {k.name: draw(k, rng) if trial and k.name not in FIXED else k.default for k in knobs}


def attempt(name: str, trial: int, target: str) -> Trial:
    """One trial, on one core."""
    import time

    torch.set_num_threads(1)
    data, what = load(DATASET), parse(target, load(DATASET))
    original = Runs().model(ModelRecipe(dataset=DATASET, model=MODEL)).model
    parts = split(data, what, val=HELD)
    start = time.perf_counter()

    def on_step(done: int, total: int) -> None:
        if time.perf_counter() - start > PATIENCE:
            raise TooSlow

    known: Trial = {"unlearner": name, "trial": trial, "settings": settings(name, trial)}
    try:
        done = UNLEARNERS[name](**known["settings"])(original, parts, what, on_step=on_step)
    except (Diverged, TooSlow) as why:
        return known | {"score": 0.0, "failure": str(why) or f"took over {PATIENCE:.0f} s"}
    seen = observe(done.model, {"forget": parts.forget, "val": parts.val})
    accuracy = {n: float((predicted(seen.logits[n]) == seen.y[n]).double().mean()) for n in seen.y}
    score = accuracy["val"] * (1 - accuracy["forget"])
    return known | {"score": score, "seconds": done.seconds, **accuracy}


def table(trials: list[Trial]) -> str:
    """A row a method: the defaults' score, and the best trial's."""
    lines = ["| method | trials | defaults | best | of which | seconds |", "|" + "---|" * 6]
    for name in sorted({t["unlearner"] for t in trials}):
        mine = {t["trial"]: t for t in trials if t["unlearner"] == name}
        best = max(mine.values(), key=lambda t: t["score"])
        usual = {k.name: k.default for k in UNLEARNERS[name].knobs()}
        changed = {k: v for k, v in best["settings"].items() if v != usual.get(k)}
        words = " ".join(f"{k}={v}" for k, v in changed.items()) or "the defaults"
        first = mine.get(0, {}).get("score", math.nan)
        took = f"{best.get('seconds', math.nan):.1f}"
        lines.append(
            f"| `{name}` | {len(mine)} | {first:.3f} | {best['score']:.3f} | {words} | {took} |"
        )
    return "\n".join(lines)


def candidates() -> list[str]:
    """Methods with something to choose: no control, and not retraining, whose recipe is fixed."""
    kinds = UNLEARNERS.items()
    names = [n for n, kind in kinds if not kind.control and "class" in kind.levels and kind.knobs()]
    return [n for n in names if n != "retrain"]


def main() -> None:
    """Make the trials that are missing, and print the table."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--unlearners", nargs="+", default=["all"])
    asked.add_argument("--trials", type=int, default=20)
    asked.add_argument("--jobs", type=int, default=2)
    asked.add_argument("--target", default="class:Sneaker")
    asked.add_argument("--out", type=Path, default=Path(__file__).parents[1] / "tuning")
    words = asked.parse_args()
    names = [n for n in candidates() if words.unlearners == ["all"] or n in words.unlearners]
    file = words.out / "fashion.json"
    words.out.mkdir(parents=True, exist_ok=True)
    trials: list[Trial] = json.loads(file.read_text()) if file.exists() else []
    there = {(t["unlearner"], t["trial"]) for t in trials}
    todo = [(n, i) for i in range(words.trials) for n in names if (n, i) not in there]
    with ProcessPoolExecutor(words.jobs) as pool:
        waiting = [pool.submit(attempt, n, i, words.target) for n, i in todo]
        for done in as_completed(waiting):
            trials.append(done.result())
            trials.sort(key=lambda t: (t["unlearner"], t["trial"]))
            file.write_text("[\n" + ",\n".join(map(json.dumps, trials)) + "\n]\n")
            sys.stderr.write(f"{len(trials)} of {len(there) + len(todo)}\r")
    sys.stdout.write(table(trials) + "\n")


if __name__ == "__main__":
    main()
