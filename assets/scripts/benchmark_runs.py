"""Time runs on `fashion`, Sneaker: from Run to every reading and picture, method by method.

A store of its own, so that nothing is found but what is shipped; the original and the golds have
been looked at before the clock starts, as the page does while a person reads.

    python assets/scripts/benchmark_runs.py [--methods pour_p,pour_d]
"""

import argparse
import tempfile
import time
from pathlib import Path

from core.devices import settle
from core.recipes import Recipe
from core.runs import Runs
from core.unlearners import UNLEARNERS


def main() -> None:
    """Print seconds by method."""
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--methods", default=",".join(UNLEARNERS))
    asked = words.parse_args()
    settle()
    with tempfile.TemporaryDirectory() as folder:
        runs = Runs(Path(folder))
        start = time.perf_counter()
        runs.warm("fashion", "resnet_mini", "class:Sneaker")
        print(f"looking at original and golds: {time.perf_counter() - start:.1f} s")  # noqa: T201
        for warm_up in (True, False):
            methods = ["do_nothing"] if warm_up else asked.methods.split(",")
            for name in methods:
                recipe = Recipe.parse(dataset="fashion", target="class:Sneaker", unlearner=name)
                start = time.perf_counter()
                record = runs.make(recipe)
                whole = time.perf_counter() - start
                parts = record.report["seconds"]
                said = ", ".join(f"{k} {parts[k]:.2f}" for k in ("observe", "audit", "figures"))
                label = f"{name} (first run of a process)" if warm_up else name
                print(  # noqa: T201
                    f"{label}: {whole:.2f} s in all; method {parts['unlearner']:.2f}, {said}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
