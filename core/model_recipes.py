"""Model recipes: everything that decides a model's weights, and the key by which they are kept."""

import hashlib
import json
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from core import codehash
from core.knobs import Value
from core.registry import find

if TYPE_CHECKING:
    from core.models.base import Architecture
    from core.unlearners.base import Unlearner

# torch comes with the registries, so they are imported where they are needed.

Json = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class ModelRecipe:
    """What decides one model's weights.

    Without an unlearner it is an original; a gold is the unlearner `retrain` with a seed of its
    own.
    """

    dataset: str
    model: str
    target: str = ""
    unlearner: "Unlearner | None" = None
    seed: int = 0

    def plan(self) -> Json:
        """As JSON values, with what the names stand for: data by digest, training in full."""
        return _about(self.dataset, self.model) | {
            "target": self.target,
            "unlearner": None if self.unlearner is None else spelled(self.unlearner),
            "seed": self.seed,
        }

    @property
    def key(self) -> str:
        """SHA-256 (hex) over the plan and the code that makes the weights."""
        return hashed(self.plan(), self.roots())

    def roots(self) -> frozenset[str]:
        """The modules that decide the weights, before what they import."""
        from core.data import SOURCES
        from core.models import MODELS

        source = find(SOURCES, self.dataset.partition(":")[0], "data set")
        names = {"core.weights", source.__module__, find(MODELS, self.model, "model").__module__}
        return frozenset(names | ({type(self.unlearner).__module__} if self.unlearner else set()))


def spelled(unlearner: "Unlearner") -> Json:
    """Name and settings; 1 and 1.0 are one setting where a number is asked for."""
    kinds = {declared.name: declared.kind for declared in unlearner.knobs()}
    settings: dict[str, Value] = {n: kinds[n](v) for n, v in unlearner.settings().items()}
    return {"name": name_of(unlearner), "settings": settings}


def name_of(thing: object) -> str:
    """The registry name of an unlearner: its file's."""
    return type(thing).__module__.rpartition(".")[2]


canonical = partial(json.dumps, sort_keys=True, separators=(",", ":"), allow_nan=False)


def hashed(plan: Json, roots: frozenset[str]) -> str:
    """SHA-256 (hex) over a plan and the code behind `roots`."""
    return hashlib.sha256(f"{canonical(plan)}\0{codehash.digest(roots)}".encode()).hexdigest()


def _about(dataset: str, model: str) -> Json:
    from core.data import load
    from core.models import MODELS

    kind: type[Architecture] = find(MODELS, model, "model")
    return {
        "dataset": dataset,
        "digest": load(dataset).digest,
        "model": model,
        "training": kind.training.settings(),
    }
