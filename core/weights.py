"""Weights: how originals, golds and unlearned models are made, written and read again."""

import importlib
import json
import time
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from safetensors.torch import save as to_bytes

from core import codehash
from core.data import targets
from core.data.examples import Dataset
from core.data.split import split
from core.models.base import Architecture
from core.models.classifier import Classifier, Transform
from core.optim import OnStep, fit, silent
from core.unlearners.base import Unlearned, Unlearner

Json = dict[str, Any]


class WeightsError(ValueError):
    """Weights that do not fit; the text is one sentence."""


def train(
    data: Dataset,
    architecture: Architecture,
    *,
    seed: int = 0,
    device: torch.device,
    on_step: OnStep = silent,
) -> Unlearned:
    """The original: the architecture trained on all training examples.

    Raises:
        Diverged: the loss is NaN or infinite.
    """
    start = time.perf_counter()
    with torch.random.fork_rng(devices=[]), torch.enable_grad():
        rng = torch.manual_seed(seed)
        model = blank(data, architecture).to(device)
        fit(model, data.train.to(device), architecture.training, rng, on_step)
    return Unlearned(model, time.perf_counter() - start, {})


def unlearn(
    data: Dataset,
    original: Classifier,
    unlearner: Unlearner,
    target: str,
    *,
    seed: int,
    device: torch.device,
    on_step: OnStep = silent,
) -> Unlearned:
    """What `unlearner` makes of the original; gold, if it is `retrain`.

    Raises:
        TargetError: no such target, or not one for this method.
        Diverged: a loss or a weight is no longer finite.
    """
    what = targets.parse(target, data)
    parts = split(data, what).to(device)
    return unlearner(original.to(device), parts, what, seed=seed, on_step=on_step)


def blank(data: Dataset, architecture: Architecture) -> Classifier:
    """A classifier for `data` with weights from torch's current generator."""
    model = architecture.build(data.shape, len(data.classes), *data.moments, mirrors=data.mirrors)
    model.names = data.classes if data.named else ()
    return model


def save(folder: Path, model: Classifier, about: Json) -> None:
    """Write `weights.safetensors` and, with the transform's name added, `weights.json`."""
    # Serialised here and written by Python, so that a full disk is an OSError like any other.
    state = {name: t.detach().cpu().contiguous() for name, t in model.state_dict().items()}
    (folder / "weights.safetensors").write_bytes(to_bytes(state))
    kind = type(model.transform)
    name = None if model.transform is None else f"{kind.__module__}:{kind.__qualname__}"
    text = json.dumps({**about, "transform": name}, indent=1, allow_nan=False)
    (folder / "weights.json").write_text(text, encoding="utf-8")


def load(stem: Path, data: Dataset, architecture: Architecture) -> tuple[Classifier, Json]:
    """The model in `stem.safetensors`, and what `stem.json` says of it.

    Raises:
        WeightsError: the files are damaged or made for another architecture.
    """
    try:
        about: Json = json.loads(stem.with_suffix(".json").read_text(encoding="utf-8"))
        state = load_file(stem.with_suffix(".safetensors"))
        with torch.random.fork_rng(devices=[]):
            model = blank(data, architecture)
        inner = {k.partition(".")[2]: v for k, v in state.items() if k.startswith("transform.")}
        if about["transform"]:
            model.transform = transform_class(about["transform"]).blank(inner)
        model.load_state_dict(state)
    except (OSError, SafetensorError, KeyError, RuntimeError, json.JSONDecodeError) as error:
        reason = " ".join(str(error).split())
        raise WeightsError(f"The weights {stem.name} cannot be used: {reason}.") from error
    return model.eval(), about


def transform_class(name: str) -> type[Transform]:
    """The transform `core.module:Class`; nothing outside this package is ever imported.

    Raises:
        WeightsError: it is no such class.
    """
    module, _, kind = name.partition(":")
    if codehash.path(module):
        found = getattr(importlib.import_module(module), kind, None)
        if isinstance(found, type) and issubclass(found, Transform):
            return found
    raise WeightsError(f"{name!r} is no transform of this package.")
