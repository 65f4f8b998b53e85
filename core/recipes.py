"""Recipes: everything that decides a result, and the key by which the result is kept."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from core import codehash
from core.model_recipes import Json, ModelRecipe, hashed, name_of, spelled
from core.registry import find

if TYPE_CHECKING:
    from core.data.examples import Dataset
    from core.data.targets import ForgetTarget
    from core.unlearners.base import Unlearner

# torch comes with the registries, so they are imported where they are needed.

MOST_GOLDS = 20
MOST_SEED = 2**31 - 1


class RecipeError(ValueError):
    """A recipe that cannot be; the text is one sentence."""


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """One question: has this unlearner made this model forget this target?

    Raises:
        RecipeError: a seed or a number of golds that cannot be.
    """

    dataset: str
    target: str
    """Canonical text, as `str(ForgetTarget)` writes it."""
    unlearner: "Unlearner"
    model: str = ""
    """Architecture; empty for the one that suits the data set."""
    seed: int = 0
    golds: int = 3
    """How many models are retrained without the forget set, with the seeds 1 to `golds`."""

    def __post_init__(self) -> None:
        _whole("seed", self.seed, MOST_SEED)
        _whole("golds", self.golds, MOST_GOLDS)

    @classmethod
    def parse(
        cls,
        *,
        dataset: str,
        target: str,
        unlearner: str,
        model: str = "",
        settings: Mapping[str, str] | None = None,
        seed: int = 0,
        golds: int = 3,
    ) -> Self:
        """From the words of an address or a command line, all checked against the data.

        Raises:
            UnknownName: no such data set, model or unlearner.
            DataError: the data cannot be had.
            TargetError: no such target, or one that the unlearner does not serve.
            KnobError: no such knob, or a value out of range.
            RecipeError: a seed or a number of golds that cannot be.
        """
        from core.data import load, targets

        method = cls.check(
            dataset=dataset,
            unlearner=unlearner,
            model=model,
            settings=settings,
            seed=seed,
            golds=golds,
        )
        data = load(dataset)
        what = targets.parse(target, data)
        refuse_level(method, what)
        return cls(
            dataset=dataset,
            model=model or data.model,
            target=str(what),
            unlearner=method,
            seed=seed,
            golds=golds,
        )

    @classmethod
    def check(
        cls,
        *,
        dataset: str,
        unlearner: str,
        model: str = "",
        settings: Mapping[str, str] | None = None,
        seed: int = 0,
        golds: int = 3,
    ) -> "Unlearner":
        """What can be said of the words without the data; the unlearner they name.

        Raises:
            UnknownName, KnobError, RecipeError: as `parse`.
        """
        from core.data import SOURCES
        from core.models import MODELS
        from core.unlearners import UNLEARNERS

        find(SOURCES, dataset.partition(":")[0], "data set")
        if model:
            find(MODELS, model, "model")
        method = find(UNLEARNERS, unlearner, "unlearner").parse(settings or {})
        _whole("seed", seed, MOST_SEED)
        _whole("golds", golds, MOST_GOLDS)
        return method

    @property
    def data(self) -> "Dataset":
        from core.data import load

        return load(self.dataset)

    @property
    def architecture(self) -> str:
        """The model's name, also where the recipe leaves it to the data set."""
        return self.model or self.data.model

    def forget(self) -> "ForgetTarget":
        """The target itself.

        Raises:
            TargetError: the data set has no such target.
        """
        from core.data import targets

        return targets.parse(self.target, self.data)

    def original(self) -> ModelRecipe:
        """The model before; the same for every target and method."""
        return ModelRecipe(dataset=self.dataset, model=self.architecture)

    def gold(self, seed: int) -> ModelRecipe:
        """The model that never saw the forget set, with the seed 1, 2, ..."""
        from core.unlearners import UNLEARNERS

        retrain = find(UNLEARNERS, "retrain", "unlearner")()
        return self._made_by(retrain, seed)

    def unlearned(self) -> ModelRecipe:
        """The model under audit."""
        return self._made_by(self.unlearner, self.seed)

    def _made_by(self, unlearner: "Unlearner", seed: int) -> ModelRecipe:
        return ModelRecipe(
            dataset=self.dataset,
            model=self.architecture,
            target=self.target,
            unlearner=unlearner,
            seed=seed,
        )

    @property
    def key(self) -> str:
        """SHA-256 (hex) over all of this, the data, and the code that makes and judges models."""
        plan = self.unlearned().plan() | {"golds": self.golds}
        return hashed(plan, self.roots())

    def roots(self) -> frozenset[str]:
        """The modules that decide the report and the figures, before what they import."""
        judges = {"core.samples", "core.bench", "core.compose"}
        for package in ("core.metrics", "core.geometry", "core.explain"):
            judges |= set(codehash.modules(package))
        makers = self.unlearned().roots() | (self.gold(1).roots() if self.golds else set())
        return frozenset(makers | judges)

    def to_json(self) -> Json:
        """As JSON values, from which `from_json` makes an equal recipe."""
        return {
            "dataset": self.dataset,
            "model": self.model,
            "target": self.target,
            "unlearner": spelled(self.unlearner),
            "seed": self.seed,
            "golds": self.golds,
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        """The recipe that `to_json` wrote; the target is not looked up in the data.

        Raises:
            RecipeError, UnknownName, KnobError: it is none.
        """
        from core.unlearners import UNLEARNERS

        try:
            name, settings = values["unlearner"]["name"], values["unlearner"]["settings"]
            words = {k: values[k] for k in ("dataset", "model", "target", "seed", "golds")}
        except (KeyError, TypeError):
            raise RecipeError("This is no recipe: a field is missing.") from None
        kind = find(UNLEARNERS, name, "unlearner")
        texts = {k: str(v) for k, v in settings.items()}
        return cls(unlearner=kind.parse(texts), **words)


def _whole(name: str, value: object, most: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
        raise RecipeError(f"{name} must be a whole number from 0 to {most}, not {value!r}.")


def refuse_level(method: "Unlearner", target: "ForgetTarget") -> None:
    """Say before any work whether the method serves this kind of target.

    Raises:
        TargetError: it does not.
    """
    from core.data.targets import TargetError, served

    if target.level not in method.levels:
        kinds = served(method.levels)
        raise TargetError(f"{name_of(method)} serves {kinds} only, not {target}.")
