"""Address: what a page shows is what its address says, checked word by word.

`?dataset=fashion&forget=class:Sneaker&unlearner=pour_d&knob.lr=0.01&seed=0` names one run.
Words that cannot be met fall back to the first visit's, each with one sentence.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from core import data, registry
from core.data.examples import DataError, Dataset
from core.data.targets import ForgetTarget, TargetError, served, subclasses
from core.data.targets import parse as parse_target
from core.knobs import KnobError
from core.models import MODELS
from core.recipes import Recipe
from core.registry import UnknownName
from core.unlearners import UNLEARNERS
from core.unlearners.base import Unlearner

FIRST = {"dataset": "fashion", "forget": "class:Sneaker", "unlearner": "pour_d"}
KNOB = "knob."
OWN = ("dataset", "model", "forget", "unlearner", "seed", "golds")
"""Words that decide the run; the others are of the view."""
LONGEST = 2000
"""Characters of one word in an address; nobody types more."""


@dataclass(frozen=True, eq=False)
class Ask:
    """A run that was asked for, with what had to be put right."""

    dataset: Dataset
    model: str
    target: ForgetTarget
    name: str
    unlearner: Unlearner
    seed: int
    golds: int
    notices: list[str] = field(default_factory=list)
    side: str = ""
    """Which of two runs on one page this is."""

    @property
    def recipe(self) -> Recipe:
        return Recipe(
            dataset=self.dataset.name,
            model=self.model,
            target=str(self.target),
            unlearner=self.unlearner,
            seed=self.seed,
            golds=self.golds,
        )

    def words(self) -> dict[str, str]:
        """The address that leads here; values that are the default are left out."""
        out = {"dataset": self.dataset.name, "forget": str(self.target), "unlearner": self.name}
        if self.model != self.dataset.model:
            out["model"] = self.model
        usual = type(self.unlearner)().settings()
        for knob, value in self.unlearner.settings().items():
            if value != usual[knob]:
                out[KNOB + knob] = str(value)
        if self.seed:
            out["seed"] = str(self.seed)
        if self.golds != GOLDS:
            out["golds"] = str(self.golds)
        return out

    @property
    def method(self) -> str:
        """`pour_p strength=0.5 seed=1`: method, knobs and seed, as `picked` reads them."""
        own = {k.removeprefix(KNOB): v for k, v in self.words().items() if k.startswith(KNOB)}
        own |= {"seed": str(self.seed)} if self.seed else {}
        return " ".join([self.name, *(f"{k}={v}" for k, v in own.items())])


GOLDS = 3


def picked(text: str, ask: Ask, side: str = "") -> Ask:
    """`ask` with another method, knobs and seed: those of `text`, as `Ask.method` writes them."""
    name, *rest = text.split() or [ask.name]
    pairs = {k: v for k, _, v in (word.partition("=") for word in rest)}
    words = {k: v for k, v in ask.words().items() if k in ("dataset", "forget", "model", "golds")}
    words |= {"unlearner": name, "seed": pairs.pop("seed", "0")}
    words |= {KNOB + knob: value for knob, value in pairs.items()}
    return replace(read(words), side=side)


def read(words: Mapping[str, str]) -> Ask:
    """The run that `words` name; whatever cannot be met is replaced and noticed."""
    words = {k: v[:LONGEST] for k, v in words.items()}
    notices: list[str] = []
    dataset = _dataset(words.get("dataset", FIRST["dataset"]), notices)
    target = _target(words.get("forget"), dataset, notices)
    name, unlearner = _unlearner(words, target, notices)
    return Ask(
        dataset=dataset,
        model=_model(words.get("model", dataset.model), dataset, notices),
        target=target,
        name=name,
        unlearner=unlearner,
        seed=_whole(words, "seed", 0, 0, 9999, notices),
        golds=_whole(words, "golds", GOLDS, 0, 5, notices),
        notices=notices,
    )


def _dataset(name: str, notices: list[str]) -> Dataset:
    try:
        return data.load(name)
    except (DataError, UnknownName) as why:
        notices.append(f"{why} Showing {FIRST['dataset']} instead.")
        return data.load(FIRST["dataset"])


def first_target(dataset: Dataset) -> ForgetTarget:
    """What a page asks to forget when nobody has said anything."""
    if dataset.name == FIRST["dataset"]:
        return parse_target(FIRST["forget"], dataset)
    if kinds := subclasses(dataset):
        return parse_target(f"subclass:{kinds[0]}", dataset)
    return parse_target(f"class:{dataset.classes[0]}", dataset)


def _target(text: str | None, dataset: Dataset, notices: list[str]) -> ForgetTarget:
    if text is None:
        return first_target(dataset)
    try:
        return parse_target(text, dataset)
    except TargetError as why:
        usual = first_target(dataset)
        notices.append(f"{why} Showing {usual} instead.")
        return usual


def _unlearner(
    words: Mapping[str, str], target: ForgetTarget, notices: list[str]
) -> tuple[str, Unlearner]:
    name = words.get("unlearner", FIRST["unlearner"])
    try:
        kind = registry.find(UNLEARNERS, name, "unlearner")
    except UnknownName as why:
        notices.append(f"{why} Showing {FIRST['unlearner']} instead.")
        name, kind = FIRST["unlearner"], UNLEARNERS[FIRST["unlearner"]]
    if target.level not in kind.levels:
        others = [n for n, k in UNLEARNERS.items() if target.level in k.levels and not k.control]
        notices.append(f"{name} serves {served(kind.levels)} only. Showing {others[0]} instead.")
        name, kind = others[0], UNLEARNERS[others[0]]
    texts = {k.removeprefix(KNOB): v for k, v in words.items() if k.startswith(KNOB)}
    try:
        return name, kind.parse(texts)
    except KnobError as why:
        notices.append(f"{why} Showing the defaults instead.")
        return name, kind()


def _model(name: str, dataset: Dataset, notices: list[str]) -> str:
    try:
        registry.find(MODELS, name, "model")
    except UnknownName as why:
        notices.append(f"{why} Showing {dataset.model} instead.")
        return dataset.model
    return name


def _whole(
    words: Mapping[str, str], name: str, usual: int, low: int, high: int, notices: list[str]
) -> int:
    text = words.get(name, str(usual))
    if text.isascii() and text.isdigit() and low <= int(text) <= high:
        return int(text)
    notices.append(f"{name} is a whole number from {low} to {high}. Showing {usual} instead.")
    return usual
