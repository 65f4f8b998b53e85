"""Audit: what three kinds of models show, and the verdict on one of them.

It sees models and data, never a method. Every reading is taken on the same rows of the original,
the unlearned and each gold model, and judged by its gap to gold.
"""

from collections.abc import Callable, MutableMapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import torch

from core.data.targets import Level
from core.metrics import METRICS
from core.metrics.base import Measured, Metric, Unavailable, gap_of
from core.metrics.outputs import Outputs
from core.registry import describe
from core.verdict import judge

OnStage = Callable[[int, int], None]
"""Called with (readings taken, readings in all); it may raise to stop the audit."""

Memo = MutableMapping[tuple[Any, ...], "Measured | Unavailable"]
"""Readings that do not depend on the model under audit, kept for the next one."""

Row = dict[str, Any]
"""One reading as it stands in the report."""


def silent(done: int, total: int) -> None:
    """An `OnStage` for nobody."""


@dataclass(frozen=True, eq=False)
class Bench:
    """The models of one audit. `golds` differ in seed only; the first one is drawn in pictures."""

    original: Outputs
    unlearned: Outputs
    golds: tuple[Outputs, ...]
    level: Level
    seed: int
    memo: Memo = field(default_factory=dict)

    @cached_property
    def untouched(self) -> frozenset[str]:
        """Taps at which the unlearned model shows exactly what the original shows."""
        mine, before = self.unlearned.features, self.original.features
        shared = [tap for tap in self.unlearned.taps if tap in self.original.taps]
        return frozenset(
            tap for tap in shared if all(torch.equal(mine[s][tap], before[s][tap]) for s in mine)
        )

    def read(self, name: str, metric: Metric, model: Outputs, tap: str) -> "Measured | Unavailable":
        """The reading of `model`; against gold, the mean over the golds other than itself."""
        if metric.against is None:
            return self._once(name, metric, model, None, tap)
        if metric.against == "original":
            return self._once(name, metric, model, self.original, tap)
        others = [g for g in self.golds if g is not model] or list(self.golds)
        if not others:
            return Unavailable("there is no gold model to compare with")
        found = [self._once(name, metric, model, gold, tap) for gold in others]
        return mean_over([f for f in found if isinstance(f, Measured)]) or found[0]

    def _once(
        self, name: str, metric: Metric, model: Outputs, reference: Outputs | None, tap: str
    ) -> "Measured | Unavailable":
        at = tap if tap in model.taps else model.taps[-1]
        if model is self.unlearned:
            if not (metric.per_tap and at in self.untouched):
                return attempt(metric, model, reference, at, self.seed)
            model = self.original  # whose reading is kept
        key = (name, model, reference, at, self.seed)
        if key not in self.memo:
            self.memo[key] = attempt(metric, model, reference, at, self.seed)
        return self.memo[key]


def attempt(
    metric: Metric, model: Outputs, reference: Outputs | None, tap: str, seed: int
) -> "Measured | Unavailable":
    """The reading, or the reason why there is none."""
    try:
        return metric.measure(model, reference, tap, seed)
    except Unavailable as why:
        return why


def mean_over(found: Sequence[Measured]) -> Measured | None:
    """The mean of one reading over several references; None without any."""
    if len(found) < 2:
        return found[0] if found else None
    parts = None
    if all(f.parts is not None for f in found):
        names = list(found[0].parts or {})
        parts = {k: sum(f.parts[k] for f in found if f.parts) / len(found) for k in names}
    low, high = (float(np.mean([getattr(f, side) for f in found])) for side in ("low", "high"))
    return Measured(float(np.mean([f.value for f in found])), low, high, found[0].n, parts)  # pyright: ignore[reportArgumentType]


def row(bench: Bench, name: str, metric: Metric, tap: str) -> Row:
    """One reading of all models, with gap and intervals, ready for JSON."""
    title, sentence = describe(type(metric))
    base: Row = {
        "name": name,
        "title": title,
        "help": " ".join([sentence, *(type(metric).__doc__ or "").split()]),
        "unit": metric.unit,
        "ideal": metric.ideal,
        "low": metric.low,
        "high": metric.high,
        "tap": tap,
    }
    if bench.level not in metric.levels:
        return base | nothing(f"it has no meaning for {bench.level} targets")
    mine = bench.read(name, metric, bench.unlearned, tap)
    if isinstance(mine, Unavailable):
        return base | nothing(str(mine))
    before = bench.read(name, metric, bench.original, tap)
    golds = [bench.read(name, metric, gold, tap) for gold in bench.golds]
    return base | filled(bench, mine, before, [g for g in golds if isinstance(g, Measured)])


def nothing(reason: str) -> Row:
    """The fields of a reading that could not be taken."""
    empty = dict.fromkeys(
        ("original", "unlearned", "gold", "gap", "interval", "gap_interval", "original_interval")
    )
    return empty | {"golds": [], "gold_range": None, "n": 0, "unavailable": f"because {reason}"}


def filled(
    bench: Bench, mine: Measured, before: "Measured | Unavailable", golds: list[Measured]
) -> Row:
    """The fields of a reading that was taken."""
    known = isinstance(before, Measured)
    out: Row = {
        "original": before.value if known else None,
        "original_interval": [before.low, before.high] if known else None,
        "unlearned": mine.value,
        "interval": [mine.low, mine.high],
        "n": mine.n,
        "gold": None,
        "golds": [g.value for g in golds],
        "gold_range": None,
        "gap": None,
        "gap_interval": None,
        "unavailable": None,
    }
    if golds:
        gap, low, high = gap_of(mine, golds, bench.seed)
        out["gold"] = float(np.mean(out["golds"]))
        out["gold_range"] = [min(out["golds"]), max(out["golds"])]
        out["gap"], out["gap_interval"] = gap, [low, high]
    return out


def audit(
    original: Outputs,
    unlearned: Outputs,
    golds: Sequence[Outputs],
    *,
    level: Level,
    about: str = "it",
    seed: int = 0,
    memo: Memo | None = None,
    on_stage: OnStage = silent,
) -> dict[str, Any]:
    """`readings` at the last tap, `depth` along all taps, and the `verdict`, as JSON values.

    `about` is what was to be forgotten, in words, for the verdict's sentence.
    """
    bench = Bench(original, unlearned, tuple(golds), level, seed, {} if memo is None else memo)
    readings: list[Row] = []
    depth: list[Row] = []
    for done, (name, kind) in enumerate(METRICS.items()):
        metric = kind()
        taps = unlearned.taps if metric.per_tap else unlearned.taps[-1:]
        rows = [row(bench, name, metric, tap) for tap in taps]
        readings.append({k: v for k, v in rows[-1].items() if k != "tap"})
        if metric.per_tap:
            depth += rows
        on_stage(done + 1, len(METRICS))
    verdict = judge(readings, depth, level=level, golds=len(golds), about=about)
    return {"verdict": verdict, "readings": readings, "depth": depth}
