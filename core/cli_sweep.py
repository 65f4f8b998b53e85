"""Command line, sweep: `forgetscope sweep` makes many runs and one table of them."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from core.console import Usage

if TYPE_CHECKING:
    from core.recipes import Recipe
    from core.sweep import Cell


def options(words: argparse.ArgumentParser) -> None:
    """What `sweep` takes."""
    add = words.add_argument
    add("--dataset", required=True, help="a name from `list datasets`, or npz:FILE")
    add("--targets", required=True, nargs="+", metavar="TARGET", help="class:Sneaker random:256")
    add("--unlearners", nargs="+", default=["all"], metavar="NAME", help="default: all")
    add("--model", default="", help="default: the one that suits the data set")
    add("--seeds", default="0", help="such as 0,1,2; default: 0")
    add("--golds", type=int, default=3, help="retrained models to compare with; default: 3")
    add("--jobs", type=int, default=1, metavar="N", help="runs at once; default: 1")
    add("--out", type=Path, required=True, metavar="DIR", help="where the tables go")
    words.set_defaults(command=run)


def run(asked: argparse.Namespace) -> int:
    """Make what is not kept yet, and write the tables anew after each run."""
    from tqdm import tqdm

    from core import sweep
    from core.jobs import Jobs
    from core.runs import Runs

    recipes, refused = _plan(asked)
    cells = list(refused)
    try:
        asked.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Usage(f"{asked.out} cannot be written: {(error.strerror or '').lower()}") from error
    words = ("dataset", "targets", "unlearners", "model", "seeds", "golds")
    about = {word: getattr(asked, word) for word in words}
    with tqdm(total=len(recipes), file=sys.stderr, unit="run") as bar:
        jobs = Jobs(Runs(), workers=asked.jobs)
        try:
            for cell in sweep.run(recipes, jobs, lambda what, done, of: bar.set_description(what)):
                cells.append(cell)
                bar.update()
                sweep.write(asked.out, cells, about)
        finally:
            jobs.close()
    sys.stdout.write(sweep.markdown(cells))
    return 1 if any(cell.record is None for cell in cells[len(refused) :]) else 0


def _plan(asked: argparse.Namespace) -> "tuple[list[Recipe], list[Cell]]":
    from core import sweep
    from core.data.examples import DataError
    from core.data.targets import TargetError
    from core.recipes import RecipeError
    from core.registry import UnknownName
    from core.unlearners import UNLEARNERS

    if not 1 <= asked.jobs <= 64:
        raise Usage(f"--jobs takes 1 to 64, not {asked.jobs}")
    seeds = list(dict.fromkeys(asked.seeds.split(",")))
    if not all(seed.isascii() and seed.isdigit() for seed in seeds):
        raise Usage(f"--seeds takes whole numbers with commas between, not {asked.seeds!r}")
    names = list(UNLEARNERS) if asked.unlearners == ["all"] else asked.unlearners
    options = {"model": asked.model, "golds": asked.golds}
    try:
        return sweep.plan(
            asked.dataset, asked.targets, names, [int(seed) for seed in seeds], **options
        )
    except (DataError, RecipeError, TargetError, UnknownName) as error:
        raise Usage(str(error)) from error
