"""Sweep: many runs at once, and one table of what they read."""

import json
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from core.jobs import Jobs
from core.recipes import Recipe
from core.records import Record

Row = dict[str, Any]
OnEnd = Callable[[str, int, int], None]
"""Called with (what ended, runs done, runs in all)."""

COLUMNS = {
    "forget_accuracy_test": "forget acc. %",
    "retain_accuracy_test": "retained acc. %",
    "aus": "AUS",
    "rus_r": "RUS to gold",
    "probe_linear": "linear probe %",
    "probe_mlp": "MLP probe %",
    "rmia": "rMIA %",
    "kl_forget": "KL to gold",
    "relearn_steps": "relearn steps",
}
"""Readings of the Markdown table; the Parquet file has all."""


@dataclass(frozen=True)
class Cell:
    """One run of a sweep, or the reason why there is none."""

    target: str
    unlearner: str
    seed: int
    record: Record | None = None
    failure: str = ""

    @classmethod
    def of(cls, record: Record) -> "Cell":
        """The cell of a run that is kept."""
        recipe = record.report["recipe"]
        return cls(recipe["target"], recipe["unlearner"]["name"], recipe["seed"], record)


def plan(
    dataset: str,
    targets: Sequence[str],
    unlearners: Sequence[str],
    seeds: Sequence[int],
    *,
    model: str = "",
    golds: int = 3,
) -> tuple[list[Recipe], list[Cell]]:
    """The recipes, target by target, and what cannot be run: methods that do not serve a target.

    Raises:
        UnknownName, DataError, TargetError, KnobError, RecipeError: as `Recipe.parse`.
    """
    from core.data import load
    from core.data import targets as texts
    from core.registry import find
    from core.unlearners import UNLEARNERS

    data = load(dataset)
    recipes: list[Recipe] = []
    refused: list[Cell] = []
    for text in targets:
        target = texts.parse(text, data)
        for name in unlearners:
            served = target.level in find(UNLEARNERS, name, "unlearner").levels
            for seed in seeds:
                if not served:
                    why = f"does not serve {target.level} targets"
                    refused.append(Cell(str(target), name, seed, failure=why))
                    continue
                recipes.append(
                    Recipe.parse(
                        dataset=dataset, target=text, unlearner=name, model=model,
                        seed=seed, golds=golds,
                    )
                )  # fmt: skip
    return recipes, refused


def run(recipes: Sequence[Recipe], jobs: Jobs, on_end: OnEnd) -> Iterator[Cell]:
    """Each recipe's cell as it is done; what is kept already is not run again."""
    for recipe in recipes:
        jobs.submit(recipe)
    for done, recipe in enumerate(recipes, 1):
        status = jobs.wait(recipe.key)
        record, name = jobs.runs.find(recipe), recipe.to_json()["unlearner"]["name"]
        failure = "" if record else (status.reason if status else "") or "it was cancelled"
        yield Cell(recipe.target, name, recipe.seed, record, failure)
        on_end(f"{name} {recipe.target}", done, len(recipes))


def long(cells: Iterable[Cell]) -> list[Row]:
    """One row a run and reading; a run that failed has one row that says why."""
    rows: list[Row] = []
    for cell in cells:
        base = {"target": cell.target, "unlearner": cell.unlearner, "seed": cell.seed}
        if cell.record is None:
            rows.append(base | {"failure": cell.failure})
            continue
        report = cell.record.report
        base |= {
            "key": cell.record.key,
            "settings": changed(report["recipe"]["unlearner"]),
            "verdict": report["verdict"]["name"],
            "seconds": report["seconds"]["unlearner"],
        }
        last = report["taps"]["unlearned"][-1]
        rows += [base | _cells(r, last) for r in report["readings"]]
        rows += [base | _cells(r, r["tap"]) for r in report["depth"] if r["tap"] != last]
    return rows


def changed(unlearner: Row) -> str:
    """`lr=0.01 epochs=3`: the knobs that are not at their defaults."""
    from core.unlearners import UNLEARNERS

    usual = UNLEARNERS[unlearner["name"]]().settings()
    return " ".join(f"{k}={v}" for k, v in unlearner["settings"].items() if v != usual.get(k))


def _cells(reading: Row, tap: str) -> Row:
    low, high = reading["interval"] or (None, None)
    names = ("original", "unlearned", "gold", "golds", "gap", "n", "unavailable", "unit")
    return {"reading": reading["name"], "tap": tap, "low": low, "high": high} | {
        name: reading[name] for name in names
    }


FIELDS = (
    *((name, "string") for name in ("target", "unlearner")),
    ("seed", "int64"),
    *((name, "string") for name in ("key", "settings", "verdict")),
    ("seconds", "float64"),
    *((name, "string") for name in ("reading", "tap", "unit")),
    *((name, "float64") for name in ("original", "unlearned", "low", "high", "gold", "gap")),
    ("golds", "list"),
    ("n", "int64"),
    *((name, "string") for name in ("unavailable", "failure")),
)


@lru_cache(maxsize=1000)
def rows(record: Record) -> tuple[Row, ...]:
    """The rows of a run that is kept; under its key nothing ever changes."""
    return tuple(long([Cell.of(record)]))


def shipped(recipe: Recipe, assets: Path) -> list[Row]:
    """Rows of the sweep under `assets` on the data, model, target and golds of `recipe`.

    They may come from other code than today's: their keys tell.
    """
    from pyarrow import parquet

    found: list[Row] = []
    for about in sorted((assets / "sweeps").glob("*/sweep.json")):
        words = json.loads(about.read_text(encoding="utf-8"))
        model = words["model"] or recipe.data.model
        mine = (words["dataset"], model, words["golds"])
        if mine == (recipe.dataset, recipe.architecture, recipe.golds):
            table = parquet.read_table(about.with_suffix(".parquet")).to_pylist()
            found += [row for row in table if row["target"] == recipe.target]
    return found


def write(folder: Path, cells: Sequence[Cell], about: Mapping[str, Any]) -> None:
    """`sweep.parquet` (a row a reading), `sweep.md` (a row a method) and `sweep.json` (`about`)."""
    import pyarrow
    from pyarrow import parquet

    kinds = {"list": pyarrow.list_(pyarrow.float64())}
    schema = pyarrow.schema(
        [(name, kinds.get(kind) or getattr(pyarrow, kind)()) for name, kind in FIELDS]
    )
    new = folder / "sweep.parquet.part"
    parquet.write_table(pyarrow.Table.from_pylist(long(cells), schema=schema), new)
    new.replace(folder / "sweep.parquet")
    (folder / "sweep.md").write_text(markdown(cells), encoding="utf-8")
    (folder / "sweep.json").write_text(json.dumps(dict(about), indent=1), encoding="utf-8")


def markdown(cells: Sequence[Cell]) -> str:
    """A table a target: original and gold, then a row a method, mean and deviation over seeds."""
    parts = []
    for target in dict.fromkeys(cell.target for cell in cells):
        mine = [cell for cell in cells if cell.target == target]
        heads = ["method", "verdict", *COLUMNS.values(), "seconds"]
        lines = [heads, ["---"] * len(heads), *_references(mine)]
        for name in dict.fromkeys(cell.unlearner for cell in mine):
            lines.append(_line(name, [cell for cell in mine if cell.unlearner == name]))
        table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        parts.append(f"### {target}\n\n{table}\n")
    return "\n".join(parts)


def _references(cells: Sequence[Cell]) -> list[list[str]]:
    first = next((cell.record for cell in cells if cell.record), None)
    if first is None:
        return []
    known = {r["name"]: r for r in first.report["readings"]}
    return [
        [f"*{who}*", "", *(_shown(known[name], [known[name][who]]) for name in COLUMNS), ""]
        for who in ("original", "gold")
    ]


def _line(name: str, cells: Sequence[Cell]) -> list[str]:
    reports = [cell.record.report for cell in cells if cell.record]
    if not reports:
        return [f"`{name}`", cells[0].failure, *[""] * (len(COLUMNS) + 1)]
    names = [report["verdict"]["name"] for report in reports]
    said = ", ".join(
        word if names.count(word) == len(cells) else f"{word} {names.count(word)}/{len(cells)}"
        for word in dict.fromkeys(names)
    )
    known = [{r["name"]: r for r in report["readings"]} for report in reports]
    shown = [_shown(known[0][c], [k[c]["unlearned"] for k in known]) for c in COLUMNS]
    seconds = statistics.mean(report["seconds"]["unlearner"] for report in reports)
    return [f"`{name}`", said, *shown, f"{seconds:.1f}"]


def _shown(reading: Row, values: Sequence[float | None]) -> str:
    known = [v for v in values if v is not None]
    if not known:
        return "n/a"
    scale, digits = (100, 1) if reading["unit"] == "fraction" else (1, 2)
    mean = f"{scale * statistics.mean(known):.{digits}f}"
    if len(known) < 2:
        return mean
    return f"{mean} ± {scale * statistics.stdev(known):.{digits}f}"
