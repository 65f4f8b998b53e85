"""Registry: a module's file name is the only name of the one class it holds."""

import importlib
import inspect
import pkgutil
from collections.abc import Mapping
from types import ModuleType
from typing import TypeVar

T = TypeVar("T")


class UnknownName(ValueError):
    """A name that no module carries; the text lists the valid ones."""


def discover(package: ModuleType, base: type[T]) -> Mapping[str, type[T]]:
    """File name to class, for each module of `package` that holds a concrete `base`.

    A module without one (the package's own `base.py`, say) is passed over if it says so by
    `__all__ = ()` or by holding the base itself.

    Raises:
        TypeError: a module holds none, or more than one.
    """
    found: dict[str, type[T]] = {}
    for info in sorted(pkgutil.iter_modules(package.__path__), key=lambda i: i.name):
        module = importlib.import_module(f"{package.__name__}.{info.name}")
        if getattr(module, "__support__", False):
            continue
        own = [
            value
            for value in vars(module).values()
            if inspect.isclass(value)
            and issubclass(value, base)
            and value.__module__ == module.__name__
            and not inspect.isabstract(value)
        ]
        if len(own) != 1:
            raise TypeError(f"{module.__name__} must hold one {base.__name__}, not {len(own)}.")
        found[info.name] = own[0]
    return found


def find(known: Mapping[str, T], name: str, noun: str) -> T:
    """The entry called `name`.

    Raises:
        UnknownName: there is none; the sentence lists those there are.
    """
    if name not in known:
        raise UnknownName(f"There is no {noun} {name!r}; choose from: {', '.join(known)}.")
    return known[name]


def describe(thing: type) -> tuple[str, str]:
    """Title and sentence, from the first line of the module that holds `thing`."""
    module = importlib.import_module(thing.__module__)
    title, _, sentence = (module.__doc__ or thing.__name__).strip().split("\n")[0].partition(": ")
    return title, sentence[:1].upper() + sentence[1:]
