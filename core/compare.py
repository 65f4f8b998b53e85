"""Compare: the rows of a sweep as one entry a method, over its seeds, beside gold."""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from core.verdict import PROBES

Row = Mapping[str, Any]
"""One reading of one run at one tap, as `core.sweep.long` writes it."""

MEMBERSHIP = ("rmia", "u_mia")
OUTPUT = {"class": "forget_accuracy_test", "subclass": "forget_accuracy_test"}
"""The reading that tells whether the output has forgotten; for images `forget_accuracy_train`."""
UTILITY = "retain_accuracy_test"


@dataclass(frozen=True)
class Spread:
    """One reading over the seeds of a method: mean, and the ends of what is known of it.

    With several seeds the ends are the least and the largest; with one, the 95 % interval over
    samples.
    """

    value: float
    low: float
    high: float
    gap: float | None
    """To gold; None without gold."""
    unit: str = ""

    @classmethod
    def of(cls, rows: Sequence[Row]) -> "Spread | None":
        """Of the rows of one reading, a row a seed; None where nothing could be read."""
        known = [row for row in rows if row["unlearned"] is not None]
        if not known:
            return None
        values, gaps = [row["unlearned"] for row in known], [row["gap"] for row in known]
        gaps = [gap for gap in gaps if gap is not None]
        ends = (min(values), max(values))
        if len(values) == 1 and known[0]["low"] is not None:
            ends = (known[0]["low"], known[0]["high"])
        gap = statistics.mean(gaps) if gaps else None
        return cls(statistics.mean(values), *ends, gap, known[0]["unit"] or "")


@dataclass(frozen=True)
class Entry:
    """One method at one setting."""

    unlearner: str
    settings: str
    """`lr=0.01` for each knob that is not at its default; empty at the defaults."""
    keys: Mapping[int, str]
    """Seed to the run's key."""
    verdicts: tuple[str, ...]
    readings: Mapping[str, Spread]
    inside: Spread | None
    """The largest gap to gold of any probe at any tap; for single images of any membership attack.
    Its `value` is the gap itself."""
    seconds: float | None
    failure: str = ""

    @property
    def name(self) -> str:
        """For people and addresses: `pour_p`, `pour_p strength=0.5`."""
        return f"{self.unlearner} {self.settings}".strip()

    @property
    def verdict(self) -> str:
        """The word, with its count where the seeds disagree."""
        counts = {word: self.verdicts.count(word) for word in dict.fromkeys(self.verdicts)}
        if len(counts) < 2:
            return next(iter(counts), "")
        return ", ".join(f"{word} {n}/{len(self.verdicts)}" for word, n in counts.items())


@dataclass(frozen=True)
class Box:
    """Where the golds lie: the least and the largest of each axis."""

    output: tuple[float, float]
    utility: tuple[float, float]
    inside: tuple[float, float]


def output_of(level: str) -> str:
    """The reading on the axis of what is said."""
    return OUTPUT.get(level, "forget_accuracy_train")


def inner(level: str) -> tuple[str, ...]:
    """The readings on the axis of what is known."""
    return MEMBERSHIP if level == "instance" else PROBES


def entries(rows: Iterable[Row], level: str) -> list[Entry]:
    """One entry a method and setting, in the order of their first row."""
    by_method: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        by_method.setdefault((row["unlearner"], row.get("settings") or ""), []).append(row)
    return [_entry(*method, mine, level) for method, mine in by_method.items()]


def _entry(unlearner: str, settings: str, rows: list[Row], level: str) -> Entry:
    failed = next((row["failure"] for row in rows if row.get("failure")), "")
    rows = [row for row in rows if not row.get("failure")]
    runs = {row["seed"]: row for row in rows}
    last = rows[-1]["tap"] if rows else ""
    if rows:
        last = next(row["tap"] for row in rows if row["reading"] == UTILITY)
    by_reading: dict[str, list[Row]] = {}
    for row in rows:
        if row["tap"] == last:
            by_reading.setdefault(row["reading"], []).append(row)
    found = {name: Spread.of(mine) for name, mine in by_reading.items()}
    seconds = [row["seconds"] for row in runs.values() if row["seconds"] is not None]
    return Entry(
        unlearner=unlearner,
        settings=settings,
        keys={seed: row["key"] for seed, row in sorted(runs.items())},
        verdicts=tuple(row["verdict"] for row in runs.values()),
        readings={name: spread for name, spread in found.items() if spread is not None},
        inside=_inside(rows, inner(level)),
        seconds=statistics.mean(seconds) if seconds else None,
        failure="" if rows else failed,
    )


def _inside(rows: Iterable[Row], names: tuple[str, ...]) -> Spread | None:
    """Per seed the largest gap to gold of the readings `names` at any tap; over the seeds."""
    worst: dict[int, float] = {}
    for row in rows:
        if row["reading"] in names and row["gap"] is not None:
            worst[row["seed"]] = max(row["gap"], worst.get(row["seed"], row["gap"]))
    if not worst:
        return None
    values = list(worst.values())
    mean = statistics.mean(values)
    return Spread(mean, min(values), max(values), mean, "fraction")


def box(rows: Iterable[Row], level: str) -> Box | None:
    """The golds' spread on the three axes; None without gold.

    A gold's own largest gap is taken to the mean of all golds, as any run's is.
    """
    golds: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        if row.get("golds"):
            golds[row["reading"], row["tap"]] = list(row["golds"])
    if not golds:
        return None
    seen = {name: values for (name, _), values in golds.items()}
    probes = [values for (name, _), values in golds.items() if name in inner(level)]
    if not probes or UTILITY not in seen or output_of(level) not in seen:
        return None
    count = min(map(len, probes))
    gaps = [max(v[i] - statistics.mean(v) for v in probes) for i in range(count)]
    ends = [(min(v), max(v)) for v in (seen[output_of(level)], seen[UTILITY], gaps)]
    return Box(*ends)


def front(found: Sequence[Entry], level: str, controls: frozenset[str] = frozenset()) -> set[str]:
    """Names of the entries that no other beats on output, utility and inside at once (Pareto).

    Better is: nearer to gold from above in what is said and known, more of what should be kept.
    Controls are no candidates.
    """
    marks = {e.name: m for e in found if e.unlearner not in controls and (m := _marks(e, level))}
    return {
        name
        for name, mine in marks.items()
        if not any(_beats(other, mine) for rival, other in marks.items() if rival != name)
    }


def _marks(entry: Entry, level: str) -> tuple[float, float, float] | None:
    """Three costs, each smaller for the better."""
    said, kept = entry.readings.get(output_of(level)), entry.readings.get(UTILITY)
    if said is None or kept is None or entry.inside is None or said.gap is None:
        return None
    excess = abs(said.gap) if level != "class" else max(0.0, said.gap)
    return excess, -kept.value, max(0.0, entry.inside.value)


def _beats(one: Sequence[float], other: Sequence[float]) -> bool:
    return all(a <= b for a, b in zip(one, other, strict=True)) and tuple(one) != tuple(other)
