"""Catalogue: what there is to choose from, as JSON values."""

from collections.abc import Callable
from typing import Any

from core.knobs import Knob
from core.registry import describe

Json = dict[str, Any]


def datasets() -> list[Json]:
    """Data sets with the classes that are known without a download."""
    from core.data import SOURCES

    return [
        _named(name, kind)
        | {
            "classes": list(kind().classes()),
            "argument": kind.argument,
            "download": kind.download,
        }
        for name, kind in SOURCES.items()
        if kind.public
    ]


def models() -> list[Json]:
    """Architectures with their training settings."""
    from core.models import MODELS

    return [
        _named(name, kind) | {"training": kind.training.settings()} for name, kind in MODELS.items()
    ]


def unlearners() -> list[Json]:
    """Unlearners, controls included, with what they read and their knobs."""
    from core.unlearners import UNLEARNERS

    return [
        _named(name, kind)
        | {
            "levels": sorted(kind.levels),
            "needs": sorted(kind.needs),
            "control": kind.control,
            "caveat": kind.caveat,
            "knobs": [_knob(one) for one in kind.knobs()],
        }
        for name, kind in UNLEARNERS.items()
    ]


def metrics() -> list[Json]:
    """Readings with unit, range and ideal."""
    from core.compose import clean
    from core.metrics import METRICS

    return [
        _named(name, kind)
        | {
            "unit": kind.unit,
            "low": clean(kind.low),
            "high": clean(kind.high),
            "ideal": kind.ideal,
            "against": kind.against,
            "per_tap": kind.per_tap,
            "levels": sorted(kind.levels),
        }
        for name, kind in METRICS.items()
    ]


LISTS: dict[str, Callable[[], list[Json]]] = {
    "datasets": datasets,
    "models": models,
    "unlearners": unlearners,
    "metrics": metrics,
}


def _named(name: str, kind: type) -> Json:
    title, sentence = describe(kind)
    return {"name": name, "title": title, "sentence": sentence}


def _knob(knob: Knob) -> Json:
    fields = ("name", "default", "low", "high", "help", "unit", "log", "choices")
    return {"kind": knob.kind.__name__} | {name: getattr(knob, name) for name in fields}
