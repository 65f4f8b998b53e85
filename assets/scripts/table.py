"""Print the table of `fashion`: each class, POUR, the controls and a held-back gold.

python assets/scripts/table.py [--classes Sneaker,Bag]
"""

import argparse

from core.data import load
from core.recipes import Recipe
from core.runs import Runs

METHODS = ("pour_p", "pour_d", "do_nothing", "mask_logits", "destroy")
READ = ("forget_accuracy_test", "retain_accuracy_test", "aus", "probe_linear", "probe_mlp")


def rows(runs: Runs, name: str) -> list[tuple]:
    """What each method does to one class; the last row is gold 3 judged by golds 1 and 2."""
    target = f"class:{name}"
    recipes = {m: Recipe.parse(dataset="fashion", target=target, unlearner=m) for m in METHODS} | {
        "held-back gold": Recipe.parse(
            dataset="fashion", target=target, unlearner="retrain", seed=3, golds=2
        )
    }
    out = []
    for method, recipe in recipes.items():
        report = runs.make(recipe).report
        found = {r["name"]: r for r in report["readings"]}
        verdict = report["verdict"]["name"]
        read = report["data_read"].get("retain", 0)
        values = [found[r] for r in READ]
        out.append((name, method, verdict, values, read, report["seconds"]["unlearner"]))
    return out


def main() -> None:
    """Print the table as Markdown."""
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--classes", default=",".join(load("fashion").classes))
    runs = Runs()
    heads = ("class", "method", "verdict", *READ, "retained, original", "retain read", "s")
    print("|", " | ".join(heads), "|")  # noqa: T201
    print("|" + "---|" * len(heads))  # noqa: T201
    for name in words.parse_args().classes.split(","):
        for label, method, verdict, values, read, seconds in rows(runs, name):
            cells = [f"{v['unlearned']:.4f} (gold {v['gold']:.4f})" for v in values]
            before = f"{values[1]['original']:.4f}"
            line = (label, method, verdict, *cells, before, str(read), f"{seconds:.1f}")
            print("|", " | ".join(line), "|", flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
