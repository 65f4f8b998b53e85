"""Imports: lower layers know nothing of higher ones, and neighbours are strangers."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

LAYERS = (
    {"knobs", "registry", "devices", "codehash"},
    {"data"},
    {"models"},
    {"optim", "losses"},
    {"unlearners", "metrics", "geometry", "explain"},
    {"verdict", "samples"},
    {"audit", "figures"},
    {"weights"},
    {"model_recipes", "store"},
    {"recipes", "arrays"},
    {"records"},
    {"compose", "zoo", "bench"},
    {"runs"},
    {"worker", "pool"},
    {"jobs", "report", "catalogue", "compare"},
    {"sweep", "console"},
    {"cli_sweep"},
    {"cli"},
    {"app"},
)
"""Left may be imported by right. Packages of one layer are strangers (but metrics use geometry)."""
STRANGERS = {"unlearners", "metrics", "geometry", "explain"}
ALLOWED = {("metrics", "geometry")}
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}


def part(module: str) -> str:
    """`core.metrics.aus` is of `metrics`, `app.panel` of `app`."""
    words = module.split(".")
    return "app" if words[0] == "app" else words[1] if len(words) > 1 else ""


def imported(tree: ast.Module) -> list[str]:
    """Modules of this project that a file imports when it is loaded or run.

    What only a type checker reads does not count.
    """
    found = []
    quiet = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in quiet:
            continue
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            if node.module in ("core", "app"):
                found += [f"{node.module}.{alias.name}" for alias in node.names]
            else:
                found.append(node.module)
    return [name for name in found if name.split(".")[0] in ("core", "app")]


def offences(path: str, source: str) -> list[str]:
    """Imports in `source`, a file at `path` (`core/metrics/aus.py`), that point the wrong way."""
    mine = part(path.removesuffix(".py").replace("/", "."))
    bad = []
    for name in imported(ast.parse(source)):
        theirs = part(name)
        if not theirs or theirs == mine:
            continue
        strange = {mine, theirs} <= STRANGERS and (mine, theirs) not in ALLOWED
        if strange or LEVEL[theirs] > LEVEL[mine]:
            bad.append(f"{path} imports {name}")
    return bad


def files() -> list[Path]:
    return sorted([*(ROOT / "core").rglob("*.py"), *(ROOT / "app").rglob("*.py")])


def test_imports_point_down():
    found = [o for f in files() for o in offences(f.relative_to(ROOT).as_posix(), f.read_text())]
    assert found == []


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("core/metrics/spy.py", "from core.unlearners.pour_p import PourP"),
        ("core/unlearners/spy.py", "def f():\n    import core.metrics.aus"),
        ("core/data/spy.py", "from core import audit"),
        ("core/explain/spy.py", "from core.geometry import etf"),
    ],
)
def test_a_planted_import_is_named(path, source):
    assert offences(path, source)[0].startswith(path)


def test_every_module_of_the_engine_has_a_layer():
    names = {f.stem for f in (ROOT / "core").glob("*.py")} - {"__init__"}
    names |= {f.name for f in (ROOT / "core").iterdir() if f.is_dir() and f.name != "__pycache__"}
    assert names - set(LEVEL) == set()


@pytest.mark.parametrize("package", ["streamlit", "plotly"])
def test_the_engine_knows_no_page(package):
    for file in (ROOT / "core").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not any(n.split(".")[0] == package for n in names), f"{file} imports {package}"


def test_charts_know_neither_page_nor_engine():
    for file in (ROOT / "app" / "charts").rglob("*.py"):
        tree = ast.parse(file.read_text())
        for node in ast.walk(tree):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            strangers = [n for n in names if n.split(".")[0] in ("streamlit", "torch", "core")]
            assert not strangers, f"{file} imports {strangers}"
