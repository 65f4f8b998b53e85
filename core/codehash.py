"""Code hash: what modules of this package say, comments and docstrings aside."""

import ast
import hashlib
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

ROOT = Path(__file__).parent


@lru_cache(maxsize=256)
def digest(roots: frozenset[str]) -> str:
    """SHA-256 over the modules `roots` (`core.optim`) and all they import from this package."""
    sha = hashlib.sha256()
    for name in closure(roots):
        sha.update(f"{name}\0{statements(name)}\0".encode())
    return sha.hexdigest()


def modules(package: str) -> list[str]:
    """The package `core.metrics` and each module in it; empty where there is no such folder."""
    folder = ROOT.joinpath(*package.split(".")[1:])
    inside = [f"{package}.{p.stem}" for p in sorted(folder.glob("*.py")) if p.stem != "__init__"]
    return [package, *inside] if inside else []


def closure(roots: Iterable[str]) -> list[str]:
    """`roots` and every module of this package that they import, however far; sorted."""
    found: set[str] = set()
    todo = [name for name in roots if path(name)]
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo += imports(name)
    return sorted(found)


def path(name: str) -> Path | None:
    """The file of a module of this package; None for other modules and for plain attributes."""
    first, *rest = name.split(".")
    if first != ROOT.name or not rest:
        return None
    stem = ROOT.joinpath(*rest)
    files = (stem.with_name(f"{stem.name}.py"), stem / "__init__.py")
    return next((f for f in files if f.is_file()), None)


@lru_cache(maxsize=1024)
def imports(name: str) -> tuple[str, ...]:
    """The modules of this package that `name` imports, also inside functions.

    A submodule is taken without its package: the package's own file is but a registry.
    """
    asked: list[str] = []
    for node in ast.walk(_tree(name)):
        if isinstance(node, ast.Import):
            asked += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                asked.append(inner if path(inner) else node.module)
    return tuple(sorted({one for one in asked if path(one)}))


@lru_cache(maxsize=1024)
def statements(name: str) -> str:
    """The module's syntax tree as text."""
    return dump(_tree(name))


def dump(node: object) -> str:
    """A syntax tree as text that is the same under every Python that has the same syntax.

    `ast.dump` lists empty fields under some versions and not under others.
    """
    if isinstance(node, list):
        return f"[{','.join(map(dump, node))}]"
    if not isinstance(node, ast.AST):
        return repr(node)
    keep_empty = isinstance(node, ast.Constant)
    fields = [
        f"{name}={dump(value)}"
        for name, value in ast.iter_fields(node)
        if (keep_empty and name == "value") or value not in (None, [])
    ]
    return f"{type(node).__name__}({','.join(fields)})"


def strip(tree: ast.Module) -> ast.Module:
    """Without docstrings, other bare strings, and what only a type checker runs."""
    for node in ast.walk(tree):
        for field in ("body", "orelse", "finalbody"):
            body = getattr(node, field, None)
            if isinstance(body, list):
                setattr(node, field, [one for one in body if not _silent(one)])
    return tree


def _silent(node: ast.stmt) -> bool:
    if isinstance(node, ast.If):
        return isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _tree(name: str) -> ast.Module:
    file = path(name)
    if file is None:
        raise ValueError(f"{name} is no module of this package")
    return strip(ast.parse(file.read_text(encoding="utf-8")))
