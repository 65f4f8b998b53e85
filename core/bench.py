"""Bench: one run's models side by side: observed, audited, drawn."""

import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from core.audit import Memo, audit
from core.data.examples import Dataset, Examples
from core.data.targets import ForgetTarget
from core.devices import one_thread
from core.explain import grad_cam
from core.explain.grad_cam import NoMap
from core.figures import figures, forget_set, map_features, map_rows
from core.geometry import project
from core.metrics import relearning
from core.metrics.outputs import Outputs, observe
from core.metrics.relearning import Relearned, relearn
from core.models.projection import Projection
from core.optim import Diverged

if TYPE_CHECKING:
    from core.records import Progress
    from core.zoo import Made

# Not imported at run time: this module's code is part of every run's key, theirs should not be.

MOST = 12
"""Models whose outputs stay in memory for the next run on the same target."""
SEED = 0
"""Of probe splits, bootstraps and samples on maps: the same for every run, so that they compare."""

DRAWN = {"original": "original", "unlearned": "unlearn", "gold": "gold 1"}
"""Whose picture is drawn from the model of which stage."""

Arrays = dict[str, np.ndarray]


class Memory:
    """Outputs of the models looked at last, and the readings taken of them."""

    def __init__(self, most: int = MOST) -> None:
        self.most = most
        self.readings: Memo = {}
        self._outputs: OrderedDict[tuple[str, str], Outputs] = OrderedDict()

    def __len__(self) -> int:
        return len(self._outputs)

    def find(self, key: str, target: str) -> Outputs | None:
        """Outputs of the model `key` on the rows of `target`."""
        if (key, target) in self._outputs:
            self._outputs.move_to_end((key, target))
        return self._outputs.get((key, target))

    def keep(self, key: str, target: str, outputs: Outputs) -> None:
        """Remember, and forget the oldest where there are too many."""
        self._outputs[key, target] = outputs
        while len(self._outputs) > self.most:
            self._outputs.popitem(last=False)
        alive = set(map(id, self._outputs.values()))
        for reading in list(self.readings):
            if any(isinstance(part, Outputs) and id(part) not in alive for part in reading):
                del self.readings[reading]


@dataclass(frozen=True, eq=False)
class Bench:
    """Data, target, and models by stage: `original`, `gold 1`, ..., `unlearn`."""

    data: Dataset
    target: ForgetTarget
    parts: Mapping[str, Examples]
    memory: Memory
    models: "dict[str, Made]" = field(default_factory=dict)
    outputs: dict[str, Outputs] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    """Why a file of pictures is not there, in one sentence."""

    @property
    def golds(self) -> list[Outputs]:
        return [o for stage, o in self.outputs.items() if stage.startswith("gold")]

    @property
    def drawn(self) -> dict[str, Outputs]:
        """The models in pictures: original, unlearned and, where there is one, the first gold."""
        return {who: self.outputs[s] for who, s in DRAWN.items() if s in self.outputs}

    def observe(self, progress: "Progress") -> None:
        """Look at the models; those seen before on this target are remembered."""
        with self._clock("observe"):
            for done, (stage, made) in enumerate(self.models.items()):
                progress("observe", done, len(self.models))
                self.outputs[stage] = self._seen(made)
            progress("observe", len(self.models), len(self.models))
        if self._relearnable:
            with self._clock("relearn"), one_thread():
                for done, (stage, made) in enumerate(self.models.items()):
                    self.outputs[stage] = self._relearned(stage, made, done, progress)
                progress("relearn", 1, 1)

    def _seen(self, made: "Made") -> Outputs:
        found = self.memory.find(made.key, self._about)
        if found is None:
            parts = self._at(made)
            labels = tuple(getattr(self.target, "labels", ()))
            body = self._body(made)
            found = observe(made.model, parts, labels, seconds=made.seconds, body=body)
            self.memory.keep(made.key, self._about, found)
        return found

    @property
    def _about(self) -> str:
        return f"{self.data.name} {self.data.digest} {self.target}"

    def _at(self, made: "Made") -> dict[str, Examples]:
        """The sets, where the model is."""
        device = made.model.mean.device
        return {name: part.to(device) for name, part in self.parts.items()}

    @property
    def _relearnable(self) -> bool:
        """Whether there is a class to learn again, and unseen images of it to tell by."""
        return self.target.level == "class" and len(self.parts["test_forget"]) > 0

    def _relearned(self, stage: str, made: "Made", done: int, progress: "Progress") -> Outputs:
        """What the model shows, and how it learned the forgotten classes again."""
        found = self.outputs[stage]
        if found.relearned is None:
            of = len(self.models) * relearning.MOST
            before = done * relearning.MOST
            with suppress(Diverged):
                again = relearn(
                    made.model,
                    self._at(made),
                    self._bar,
                    lambda step, _: progress("relearn", before + step, of),
                )
                found = replace(found, relearned=again)
                self.memory.keep(made.key, self._about, found)
        return found

    @property
    def _bar(self) -> float | None:
        """What the original's accuracy asks of the others; None before it was looked at."""
        first: Relearned | None = self.outputs["original"].relearned
        return None if first is None else first.bar

    def _body(self, made: "Made") -> Outputs | None:
        """What the original showed, if the model's body is still the original's."""
        first = self.outputs.get("original")
        same = first is not None and made.model.same_body(self.models["original"].model)
        return first if same else None

    def audit(self, progress: "Progress") -> dict[str, Any]:
        """Readings, depth and verdict."""
        progress("audit", 0, 1)
        with self._clock("audit"), one_thread():
            return audit(
                self.outputs["original"],
                self.outputs["unlearn"],
                self.golds,
                level=self.target.level,
                about=self.target.title(),
                seed=SEED,
                memo=self.memory.readings,
                on_stage=lambda done, of: progress("audit", done, of),
            )

    def pictures(self, progress: "Progress") -> dict[str, Arrays]:
        """The arrays behind the pictures, by the name of their file; see `missing`."""
        found: dict[str, Arrays] = {}
        with self._clock("figures"), one_thread():
            for done, (name, draw) in enumerate(self._draws.items()):
                progress("figures", done, len(self._draws))
                try:
                    found[name] = draw()
                except (NoMap, project.NoLayout) as why:
                    self.missing[name] = str(why)
            progress("figures", len(self._draws), len(self._draws))
        return found

    @property
    def _draws(self) -> dict[str, Callable[[], Arrays]]:
        return {
            "figures": lambda: figures(self.drawn, self._basis(), seed=SEED),
            "features": lambda: {who: z.numpy() for who, z in self._places().items()},
            "layout_pca": lambda: layout("pca", self._places(), self._gone()),
            "attention": self._attention,
        }

    def _places(self) -> dict[str, Tensor]:
        return map_features(self.drawn, SEED)

    def _gone(self) -> np.ndarray:
        return map_rows(self.drawn, SEED)["map/forget"]

    def _attention(self) -> Arrays:
        first = self.outputs["original"]
        sets = (forget_set(first), "test_retain")
        y, ids = first.labels(*sets), torch.cat([first.ids[name] for name in sets])
        gone = torch.arange(len(y)) < len(first.y[sets[0]])
        said = {who: torch.cat([o.logits[name] for name in sets]) for who, o in self.drawn.items()}
        rows = grad_cam.rows(y, gone, said, seed=SEED)
        models = {who: self.models[stage].model for who, stage in DRAWN.items() if who in said}
        images = self.data.by_id(ids[rows]).to(models["original"].mean.device)
        return grad_cam.attention(models, images, gone[rows])

    def _basis(self) -> Tensor | None:
        transform = self.models["unlearn"].model.transform
        if not isinstance(transform, Projection):
            return None
        return transform.basis.detach().cpu().to(torch.float32)

    @contextmanager
    def _clock(self, name: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.seconds[name] = time.perf_counter() - start


def layout(method: str, features: Mapping[str, Tensor | np.ndarray], gone: np.ndarray) -> Arrays:
    """The map of all models' features (m d), gold turned onto the original by its retained rows.

    Raises:
        UnknownName: no such method.
        NoLayout: features that no map can show.
    """
    return project.joint(method, features, seed=SEED, retained=~gone)
