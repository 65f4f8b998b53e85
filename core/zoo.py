"""Zoo: models by recipe, shipped with the package, kept, or trained now."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import torch

from core import weights
from core.compose import versions
from core.data import load
from core.model_recipes import ModelRecipe, canonical
from core.models import MODELS
from core.models.classifier import Classifier
from core.optim import OnStep
from core.records import Progress, silent
from core.registry import find
from core.store import Store


@dataclass(frozen=True, eq=False)
class Made:
    """A model and what its making took."""

    key: str
    model: Classifier
    seconds: float
    """Wall clock of training or unlearning, on the machine where that was done."""
    read: Mapping[str, int]
    note: str


class Zoo:
    """Models under `assets/weights` first, then those in the store, then training."""

    def __init__(self, store: Store, assets: Path, device: torch.device) -> None:
        self.store, self.assets, self.device = store, assets, device

    def has(self, recipe: ModelRecipe) -> bool:
        """Whether `model` would find it."""
        return self._stem(recipe) is not None

    def model(self, recipe: ModelRecipe, progress: Progress = silent, stage: str = "model") -> Made:
        """The model of this recipe, found or trained (its original too, if need be).

        Raises:
            Diverged, TargetError, DataError, WeightsError, StoreError, Cancelled: there is none.
        """
        stem = self._stem(recipe)
        if stem is not None:
            progress(stage, 1, 1)
            return self._load(recipe, stem)
        original = None
        if recipe.unlearner is not None:
            source = ModelRecipe(dataset=recipe.dataset, model=recipe.model)
            original = self.model(source, progress, "original").model
        with self.store.lock("models", recipe.key, lambda: progress("waiting", 0, 1)):
            stem = self._stem(recipe)
            if stem is not None:
                return self._load(recipe, stem)
            return self._train(recipe, original, lambda done, of: progress(stage, done, of))

    def _stem(self, recipe: ModelRecipe) -> Path | None:
        shipped = self._shipped.get(canonical(recipe.plan()))
        if shipped is not None:
            return shipped
        folder = self.store.find("models", recipe.key)
        return None if folder is None else folder / "weights"

    @cached_property
    def _shipped(self) -> dict[str, Path]:
        # Matched without the hash of the code: these weights are read, never made again here.
        found: dict[str, Path] = {}
        for path in sorted((self.assets / "weights").glob("*.json")):
            about = json.loads(path.read_text(encoding="utf-8"))
            found[canonical(about["recipe"])] = path.with_suffix("")
        return found

    def _load(self, recipe: ModelRecipe, stem: Path) -> Made:
        how = find(MODELS, recipe.model, "model")()
        model, about = weights.load(stem, load(recipe.dataset), how)
        seconds, read, note = about["seconds"], about["read"], about["note"]
        return Made(recipe.key, model.to(self.device), seconds, read, note)

    def _train(self, recipe: ModelRecipe, original: Classifier | None, on_step: OnStep) -> Made:
        data, how = load(recipe.dataset), find(MODELS, recipe.model, "model")()
        seed, device = recipe.seed, self.device
        if original is None or recipe.unlearner is None:
            made = weights.train(data, how, seed=seed, device=device, on_step=on_step)
        else:
            made = weights.unlearn(
                data,
                original,
                recipe.unlearner,
                recipe.target,
                seed=seed,
                device=device,
                on_step=on_step,
            )
        about = {
            "recipe": recipe.plan(),
            "seconds": made.seconds,
            "read": made.read,
            "note": made.note,
            "versions": versions(device),
        }
        with self.store.write("models", recipe.key) as folder:
            weights.save(folder, made.model, about)
            # Read back, so that today's run and tomorrow's look at the very same model.
            return self._load(recipe, folder / "weights")
