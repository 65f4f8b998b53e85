"""Compose: a finished run's report, in JSON values."""

import dataclasses
import math
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from core.registry import describe

if TYPE_CHECKING:
    import torch

    from core.bench import Bench
    from core.recipes import Recipe

Json = dict[str, Any]

PACKAGES = ("forgetscope", "torch", "numpy", "scikit-learn", "umap-learn", "captum")


def compose(recipe: "Recipe", bench: "Bench", judged: Json, device: "torch.device") -> Json:
    """Everything a reader needs to judge the run, and to do it again."""
    made = bench.models["unlearn"]
    cite = recipe.unlearner.cite
    title, _ = describe(type(recipe.unlearner))
    return clean(
        {
            "recipe": recipe.to_json() | {"model": recipe.architecture},
            "key": recipe.key,
            "title": f"{title}: forget {bench.target.title()} of {recipe.dataset}",
            "target": target(bench),
            "classes": bench.data.classes,
            "taps": {who: outputs.taps for who, outputs in bench.drawn.items()},
            "sizes": {name: len(part) for name, part in bench.parts.items()},
            **judged,
            "seconds": seconds(bench),
            "data_read": made.read,
            "data": {k: getattr(bench.data, k) for k in ("digest", "licence", "origin")},
            "models": {stage: one.key for stage, one in bench.models.items()},
            "versions": versions(device),
            "note": made.note,
            "missing": bench.missing,
            "cite": None if cite is None else dataclasses.asdict(cite),
        }
    )


def target(bench: "Bench") -> Json:
    """What was to be forgotten."""
    what = bench.target
    return {
        "text": str(what),
        "title": what.title(),
        "level": what.level,
        "forget_classes": getattr(what, "labels", ()),
    }


def seconds(bench: "Bench") -> Json:
    """How long each part took; `retrain` is the mean over golds, None without one."""
    golds = [made.seconds for stage, made in bench.models.items() if stage.startswith("gold")]
    return {
        "unlearner": bench.models["unlearn"].seconds,
        "original": bench.models["original"].seconds,
        "retrain": sum(golds) / len(golds) if golds else None,
        **bench.seconds,
    }


def versions(device: "torch.device") -> dict[str, str]:
    """What a result may depend on beside its recipe."""
    found = {"python": platform.python_version(), "machine": platform.machine()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue  # run from a checkout, or an extra that is not installed
    return found | {"device": str(device)}


def clean(value: Any) -> Any:
    """Plain JSON values; a number that is not finite is no number."""
    if isinstance(value, dict):
        return {str(k): clean(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [clean(v) for v in value]
    if hasattr(value, "item"):  # a scalar of numpy or torch
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
