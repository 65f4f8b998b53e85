"""Command line: `forgetscope list`, `run`, `sweep` and `app`."""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Self

from core import cli_sweep
from core.catalogue import LISTS, Json
from core.console import Failed, Parser, Usage, complain

if TYPE_CHECKING:
    from core.recipes import Recipe
    from core.runs import Runs


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; 0, 1 for a run that failed, 2 for a command that makes no sense."""
    try:
        asked = parser().parse_args(argv)
        return asked.command(asked)
    except SystemExit as end:  # --help
        return int(end.code or 0)
    except Usage as error:
        return complain(str(error), 2)
    except Failed as error:
        return complain(str(error), 1)
    except KeyboardInterrupt:
        return complain("stopped", 1)
    except BrokenPipeError:  # the reader of our output has left
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def parser() -> argparse.ArgumentParser:
    """The commands and their options."""
    top = Parser(prog="forgetscope", description="See whether a vision model has forgotten.")
    commands = top.add_subparsers(title="commands", required=True, metavar="{list,run,sweep,app}")
    _list_options(commands.add_parser("list", help="what there is to choose from"))
    _run_options(commands.add_parser("run", help="unlearn, audit and report"))
    cli_sweep.options(commands.add_parser("sweep", help="many runs, and one table of them"))
    app = commands.add_parser("app", help="open the app in a browser")
    app.add_argument("--port", type=int, default=8501, help="default: 8501")
    app.add_argument("--no-browser", action="store_true", help="only serve")
    app.set_defaults(command=open_app)
    return top


def _list_options(options: argparse.ArgumentParser) -> None:
    options.add_argument("what", choices=tuple(LISTS))
    options.add_argument("--json", action="store_true", help="for programs")
    options.set_defaults(command=show_list)


def _run_options(options: argparse.ArgumentParser) -> None:
    add = options.add_argument
    add("--dataset", required=True, help="a name from `list datasets`, or npz:FILE")
    add("--forget", required=True, metavar="TARGET", help="class:Sneaker, random:256, ids:3,17")
    add("--unlearner", required=True, help="a name from `list unlearners`")
    add("--model", default="", help="default: the one that suits the data set")
    add("--set", action="append", default=[], metavar="KNOB=VALUE", dest="settings")
    add("--seed", type=int, default=0, help="of the unlearner; default: 0")
    add("--golds", type=int, default=3, help="retrained models to compare with; default: 3")
    add("--device", default=None, help="cpu, cuda or mps; default: the best there is")
    add("--json", type=Path, metavar="FILE", help="write the report for programs")
    add("--html", type=Path, metavar="FILE", help="write the report for readers")
    options.set_defaults(command=run)


def show_list(asked: argparse.Namespace) -> int:
    """Print one list."""
    rows = LISTS[asked.what]()
    if asked.json:
        sys.stdout.write(json.dumps(rows, indent=1, allow_nan=False) + "\n")
        return 0
    width = max(len(row["name"]) for row in rows)
    for row in rows:
        line = f"{row['name']:<{width}}  {row['title']}: {row['sentence']}"
        sys.stdout.write(line.rstrip(": ") + "\n")
        for knob in row.get("knobs", ()):
            sys.stdout.write(f"{'':<{width}}    {_knob_line(knob)}\n")
    return 0


def _knob_line(knob: Json) -> str:
    values = ", ".join(knob["choices"])
    if not values and knob["low"] is not None:
        values = f"{knob['low']:g} to {knob['high']:g} {knob['unit']}".strip()
    return f"{knob['name']}={knob['default']} ({values or knob['kind']}): {knob['help']}"


def run(asked: argparse.Namespace) -> int:
    """Make the run (or find it), print its report, write the files that were asked for."""
    from core import report

    for path in (asked.json, asked.html):
        refuse_unwritable(path)
    values = _make(asked)
    if asked.json:
        _write(asked.json, json.dumps(values, indent=1, allow_nan=False) + "\n")
    if asked.html:
        _write(asked.html, report.html(values))
    sys.stdout.write(report.text(values))
    return 0


def _make(asked: argparse.Namespace) -> Json:
    from core.worker import patience, sentence

    patience()
    from core.devices import DeviceError, choose, settle
    from core.runs import Runs

    settle()
    try:
        choose(asked.device)
    except DeviceError as error:
        raise Usage(str(error)) from error
    try:
        runs = Runs(device=asked.device)
        with Bar() as bar:
            return runs.make(_recipe(asked, runs, bar), bar).report
    except Usage:
        raise
    except Exception as error:
        raise Failed(sentence(error)) from error


def _recipe(asked: argparse.Namespace, runs: "Runs", bar: "Bar") -> "Recipe":
    from core.data import SOURCES
    from core.data.examples import DataError
    from core.data.targets import TargetError
    from core.knobs import KnobError
    from core.recipes import Recipe, RecipeError
    from core.registry import UnknownName

    words = {k: getattr(asked, k) for k in ("dataset", "unlearner", "model", "seed", "golds")}
    words |= {"settings": _settings(asked.settings)}
    source = SOURCES.get(asked.dataset.partition(":")[0])
    try:
        Recipe.check(**words)  # before a download
        runs.fetch(asked.dataset, bar)
        return Recipe.parse(target=asked.forget, **words)
    except DataError as error:
        if source is not None and source.download:  # no fault of the command's
            raise
        raise Usage(str(error)) from error
    except (KnobError, RecipeError, TargetError, UnknownName) as error:
        raise Usage(str(error)) from error


def _settings(texts: Sequence[str]) -> dict[str, str]:
    """`knob=value`, each knob once."""
    settings: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise Usage(f"--set takes knob=value, not {text!r}")
        if name in settings:
            raise Usage(f"--set {name} was given twice")
        settings[name] = value
    return settings


def refuse_unwritable(path: Path | None) -> None:
    """Find out before the run whether its report can be written."""
    if path is None:
        return
    new = not path.exists()
    try:
        path.open("a").close()
    except OSError as error:
        raise Usage(f"{path} cannot be written: {(error.strerror or 'unknown').lower()}") from error
    if new:
        path.unlink()


def _write(path: Path, content: str) -> None:
    try:
        path.write_text(content, encoding="utf-8")
    except OSError as error:
        raise Failed(f"{path} could not be written: {error.strerror}") from error


class Bar:
    """A `Progress` on stderr, one bar a stage."""

    def __init__(self) -> None:
        self._stage, self._bar = "", None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._end()

    def __call__(self, stage: str, done: int, of: int) -> None:
        from tqdm import tqdm

        if self._bar is None or stage != self._stage:
            self._end()
            self._stage, self._bar = stage, tqdm(total=of, desc=stage, file=sys.stderr, leave=False)
        self._bar.total = of
        self._bar.update(done - self._bar.n)

    def _end(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None


def open_app(asked: argparse.Namespace) -> int:
    """Serve the app on this machine only, until Ctrl-C."""
    page = Path(__file__).parents[1] / "app" / "main.py"
    if not page.is_file():
        raise Failed("the app is not installed beside the engine")
    if not 1 <= asked.port <= 65535:
        raise Usage(f"--port takes 1 to 65535, not {asked.port}")
    command = streamlit(page, asked.port, asked.no_browser)
    # Streamlit puts the page's folder on the path, not the one above.
    above = os.pathsep.join(filter(None, (str(page.parents[1]), os.environ.get("PYTHONPATH"))))
    environment = os.environ | {"PYTHONPATH": above}
    if os.name == "posix":  # signals and exit code are then Streamlit's own
        os.execve(command[0], command, environment)
    return subprocess.call(command, env=environment)


def streamlit(page: Path, port: int, quiet: bool) -> list[str]:
    """The command that serves `page`."""
    options = {
        "server.address": "localhost",
        "server.port": port,
        "server.headless": str(quiet).lower(),
        "server.showEmailPrompt": "false",
        "server.fileWatcherType": "none",
        "server.maxUploadSize": 200,
        "browser.gatherUsageStats": "false",
        "client.toolbarMode": "minimal",
    }
    words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    return [sys.executable, "-m", "app.serve", "run", str(page), *words]


if __name__ == "__main__":
    sys.exit(main())
