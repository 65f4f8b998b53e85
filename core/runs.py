"""Runs: the one maker and keeper of models, reports and figures."""

import json
import os
import shutil
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.arrays import packed, save_arrays
from core.model_recipes import ModelRecipe, name_of
from core.recipes import Recipe, refuse_level
from core.records import Cancelled, Progress, Record, silent
from core.store import Store, StoreError

if TYPE_CHECKING:
    from core.bench import Bench, Memory
    from core.data.examples import Dataset
    from core.zoo import Made, Zoo

# The app reads records, and starts no torch for it: what makes them is imported where it is used.

__all__ = ("Cancelled", "Progress", "Record", "Runs", "StoreError", "silent")

ASSETS = Path(__file__).parents[1] / "assets"


class Runs:
    """Finds what is there (kept under `root`, or shipped) and makes what is not."""

    def __init__(
        self, root: Path | None = None, *, device: str | None = None, assets: Path = ASSETS
    ) -> None:
        """`root`, else FORGETSCOPE_HOME, else ~/.cache/forgetscope."""
        home = os.environ.get("FORGETSCOPE_HOME") or Path.home() / ".cache" / "forgetscope"
        self.store = Store(Path(root or home).expanduser())
        self.assets = assets
        self._device = device
        self._recipes: dict[str, Recipe | None] = {}

    @property
    def root(self) -> Path:
        return self.store.root

    @cached_property
    def zoo(self) -> "Zoo":
        """Models, found or trained."""
        from core.devices import choose
        from core.zoo import Zoo

        return Zoo(self.store, self.assets, choose(self._device))

    @cached_property
    def memory(self) -> "Memory":
        """What was looked at last."""
        from core.bench import Memory

        return Memory()

    def find(self, recipe: Recipe) -> Record | None:
        """The finished run, if it is kept or shipped."""
        return self.record(recipe.key)

    def record(self, key: str) -> Record | None:
        """The finished run with this key."""
        folder = self.store.find("runs", key)
        if folder is None and (self.assets / "runs" / key / "report.json").is_file():
            folder = self.assets / "runs" / key
        return None if folder is None else Record(folder)

    def kept(self, recipe: Recipe) -> list[Record]:
        """Finished runs of this code, kept or shipped, that differ from `recipe` in method, knobs
        and seed at most; by name and seed.
        """
        found = {}
        for folder in [*self.assets.glob("runs/*"), *self.store.folders("runs")]:
            one = self._recipe(folder)
            if one is not None and alike(one, recipe) and one.key == folder.name:
                found[folder.name] = (name_of(one.unlearner), one.seed, folder)
        return [Record(folder) for _, _, folder in sorted(found.values())]

    def _recipe(self, folder: Path) -> Recipe | None:
        """What a run's folder says it is of; None if that cannot be read, or is no more."""
        if folder.name not in self._recipes:
            try:
                words = json.loads((folder / "recipe.json").read_text(encoding="utf-8"))
                self._recipes[folder.name] = Recipe.from_json(words)
            except (OSError, ValueError):  # knobs and names of another version among them
                self._recipes[folder.name] = None
        return self._recipes[folder.name]

    def stages(self, recipe: Recipe) -> tuple[str, ...]:
        """What `make` would have to do now, in order."""
        if self.find(recipe):
            return ()
        missing = [stage for stage, one in plan(recipe).items() if not self.zoo.has(one)]
        again = ("relearn",) if recipe.forget().level == "class" else ()
        return ("data", *missing, "observe", *again, "audit", "figures", "save")

    def fetch(self, dataset: str, progress: Progress = silent) -> "Dataset":
        """The data set, downloaded if need be.

        Raises:
            UnknownName, DataError: it cannot be had.
        """
        from core.data import SOURCES, load

        progress("data", 0, 100)
        source = SOURCES.get(dataset.partition(":")[0])
        if source is not None and source.download:
            load(dataset, lambda share: progress("data", int(100 * share), 100))
        data = load(dataset)
        progress("data", 100, 100)
        return data

    def model(
        self, recipe: ModelRecipe, progress: Progress = silent, stage: str = "model"
    ) -> "Made":
        """The model of this recipe, found or trained; see `Zoo.model`."""
        return self.zoo.model(recipe, progress, stage)

    def make(self, recipe: Recipe, progress: Progress = silent) -> Record:
        """The finished run, found or made.

        Raises:
            Diverged, TargetError, DataError, WeightsError, StoreError, Cancelled: there is none.
        """
        with self.store.lock("runs", recipe.key, lambda: progress("waiting", 0, 1)):
            return self.find(recipe) or self._make(recipe, progress)

    def _make(self, recipe: Recipe, progress: Progress) -> Record:
        from core.compose import compose

        bench = self._bench(recipe, progress)
        bench.observe(progress)
        judged = bench.audit(progress)
        arrays = bench.pictures(progress)
        progress("save", 0, 1)
        report = compose(recipe, bench, judged, self.zoo.device)
        with self.store.write("runs", recipe.key) as folder:
            write_json(folder / "recipe.json", recipe.to_json())
            write_json(folder / "report.json", report)
            for name, group in arrays.items():
                save_arrays(folder / f"{name}.npz", group)
        progress("save", 1, 1)
        return Record(self.store.place("runs", recipe.key))

    def _bench(self, recipe: Recipe, progress: Progress) -> "Bench":
        from core.bench import Bench
        from core.samples import parts

        data, target = self.fetch(recipe.dataset, progress), recipe.forget()
        refuse_level(recipe.unlearner, target)
        bench = Bench(data, target, parts(data, target), self.memory)
        for stage, one in plan(recipe).items():
            bench.models[stage] = self.model(one, progress, stage)
        return bench

    def warm(
        self,
        dataset: str,
        model: str,
        target: str,
        golds: int = 3,
        progress: Progress = silent,
    ) -> None:
        """Make, look at and read the original and the golds, so that a run on this target pays
        for its own model only. Nothing but the models is kept on the disk.

        Raises:
            As `make`.
        """
        recipe = Recipe.parse(
            dataset=dataset, model=model, target=target, unlearner="do_nothing", golds=golds
        )
        bench = self._bench(recipe, progress)
        bench.observe(progress)
        bench.audit(progress)

    def layout(self, recipe: Recipe, method: str, progress: Progress = silent) -> Path:
        """The map `layout_<method>.npz` of a run that is finished, found or made.

        Raises:
            UnknownName: no such method.
            NoLayout: features that no map can show.
            StoreError, Cancelled: there is none.
        """
        from core import bench

        name = f"layout_{method}"
        record = self.make(recipe, progress)
        with self.store.lock("layouts", f"{record.key}-{method}"):
            if record.has(name):
                return record.path / f"{name}.npz"
            progress("layout", 0, 1)
            gone = record.arrays("figures")["map/forget"]
            points = bench.layout(method, record.arrays("features"), gone)
            record = self._own(record)
            path = self.store.add("runs", record.key, f"{name}.npz", packed(points))
        progress("layout", 1, 1)
        return path

    def _own(self, record: Record) -> Record:
        """The record itself, or a copy in the store of one that is shipped."""
        mine = self.store.place("runs", record.key)
        if record.path != mine:
            with self.store.write("runs", record.key) as folder:
                shutil.copytree(record.path, folder, dirs_exist_ok=True)
        return Record(mine)


def alike(one: Recipe, other: Recipe) -> bool:
    """Whether two recipes have the original, the golds and the rows in common."""
    names = ("dataset", "architecture", "target", "golds")
    return all(getattr(one, name) == getattr(other, name) for name in names)


def plan(recipe: Recipe) -> dict[str, ModelRecipe]:
    """The models that a run looks at, by stage, in the order of their making."""
    golds = {f"gold {seed}": recipe.gold(seed) for seed in range(1, recipe.golds + 1)}
    return {"original": recipe.original(), **golds, "unlearn": recipe.unlearned()}


def write_json(path: Path, values: dict[str, Any]) -> None:
    """Write `values`; NaN and infinity are no JSON."""
    path.write_text(json.dumps(values, indent=1, allow_nan=False), encoding="utf-8")
