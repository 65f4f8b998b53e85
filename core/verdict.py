"""Verdict: five words for what an audit's readings say, with the criteria behind them."""

import math
import statistics
from typing import Any, Literal

from core.data.targets import Level

Row = dict[str, Any]
Name = Literal["Erased", "Masked", "Retained", "Collapsed", "Inconclusive"]
Side = Literal["above", "below", "both"]

UTILITY = 0.05
"""Retained accuracy may fall this far below gold (Mirage's default)."""
OUTPUT = 0.05
"""Forget accuracy may lie this far from gold (Mirage's default)."""
REPRESENTATION = 0.02
"""A probe may read this far from gold (Mirage's default), beyond what `noise` allows."""
MEMBERSHIP = 0.05
"""The membership attack may succeed this far from gold, beyond what `noise` allows."""
MOVED = 0.5
"""The forget set's features must have left the original's at least this share of gold's way."""
SEED_SD = 0.02
"""Standard deviation of a probe between golds that differ in seed only, before any is looked at:
about what the thirty golds of `fashion` show. It weighs as much as PRIOR golds."""
PRIOR = 2
SIGMAS = 3
"""A verdict makes a dozen such checks: at two deviations every other gold would fail one."""

ATTACKS = ("rmia", "rmia_fpr", "u_mia")
"""On features, with its false alarms, and on the loss."""
PROBES = ("probe_linear", "probe_mlp", "probe_norm")
"""A linear probe alone never certifies: a projected class is invisible to it, not to the others."""


def check(row: Row, tolerance: float, side: Side) -> Row:
    """Whether a reading lies within `tolerance` of gold, on the side that matters.

    It fails where the whole 95 % interval of the gap lies beyond. It is open (None) where there is
    no gap, where the gap lies beyond and its interval reaches back, and where the interval is
    wider than the tolerance and reaches beyond it.
    """
    out: Row = {"reading": row["name"], "title": row["title"], "tap": row.get("tap")}
    out |= {k: row[k] for k in ("unlearned", "gold", "gap", "unavailable")}
    out |= {"interval": row["gap_interval"], "tolerance": tolerance, "side": side, "holds": None}
    if row["gap"] is None:
        return out
    low, high = row["gap_interval"]
    reaches = beyond(high, tolerance, side) or beyond(low, tolerance, side)
    failed = (side != "below" and low > tolerance) or (side != "above" and high < -tolerance)
    wide = (high - low) / 2 > tolerance and reaches
    unsure = beyond(row["gap"], tolerance, side) or wide
    return out | {"holds": False if failed else None if unsure else True}


def beyond(gap: float, tolerance: float, side: Side) -> bool:
    """Whether a gap lies outside the tolerance on the side that matters."""
    return (side != "below" and gap > tolerance) or (side != "above" and gap < -tolerance)


def noise(row: Row) -> float:
    """How far a further gold may lie from the mean of those there are, by its seed alone.

    SIGMAS standard deviations of that difference. A few golds tell their own spread badly, so it is
    taken together with what is usual (`SEED_SD`), as a scaled inverse chi-squared prior does.
    """
    k = len(row["golds"])
    if not k:
        return 0.0
    own = (k - 1) * statistics.variance(row["golds"]) if k > 1 else 0.0
    sd = math.sqrt((PRIOR * SEED_SD**2 + own) / (PRIOR + k - 1))
    return SIGMAS * sd * math.sqrt(1 + 1 / k)


def criterion(name: str, title: str, checks: list[Row]) -> Row:
    """All of its checks together: it fails when one fails, and is open when one is open."""
    states = [c["holds"] for c in checks]
    holds = False if False in states else None if None in states or not states else True
    failed = [c for c in checks if c["holds"] is False] or [
        c for c in checks if c["gap"] is not None
    ]
    worst = max(failed, key=lambda c: abs(c["gap"]) - c["tolerance"], default=None)
    return {"name": name, "title": title, "holds": holds, "worst": worst, "checks": checks}


def criteria(readings: list[Row], depth: list[Row], level: Level) -> list[Row]:
    """Utility and output, then representation (classes, subclasses) or membership (instances).

    Gold answers for an unseen subclass by what it has in common with its class, and for an unseen
    image by its class, so that there too little is damage as too much is knowledge.
    """
    at = {row["name"]: row for row in readings}
    kept = [check(at["retain_accuracy_test"], UTILITY, "below")]
    side = "above" if level == "class" else "both"
    if level != "instance":
        gone = [check(at[f"forget_accuracy_{part}"], OUTPUT, side) for part in ("test", "train")]
        inside = [check(r, REPRESENTATION + noise(r), "both") for r in depth if r["name"] in PROBES]
        # Where gold itself tells the class at a glance, probes have no room to show a leak; but
        # features that are still the original's have not forgotten.
        moved = at["phi_forget_original"]
        inside.append(check(moved, (1 - MOVED) * (moved["gold"] or 0.0), "below"))
        last = criterion("representation", "Representation forgotten", inside)
    else:
        gone = [check(at["forget_accuracy_train"], OUTPUT, side)]
        attack = [check(at[n], MEMBERSHIP + noise(at[n]), "both") for n in ATTACKS]
        last = criterion("membership", "Membership as in gold", attack)
    return [
        criterion("utility", "Utility kept", kept),
        criterion("output", "Output forgotten", gone),
        last,
    ]


def judge(
    readings: list[Row], depth: list[Row], *, level: Level, golds: int, about: str = "it"
) -> Row:
    """The verdict: `name`, `reason` in one sentence, and the `criteria` with all their numbers.

    `about` is what was to be forgotten, in words.
    """
    found = criteria(readings, depth, level)
    name, reason = decide(found, golds, about)
    return {"name": name, "reason": reason, "criteria": found, "level": level}


def decide(found: list[Row], golds: int, about: str) -> tuple[Name, str]:
    """The word for three criteria, and why."""
    utility, output, inside = found
    if not golds:
        return "Inconclusive", "There is no gold model to compare with."
    if utility["holds"] is False:
        return "Collapsed", f"It has lost what it should have kept: {told(utility['worst'])}."
    if output["holds"] is False and output["worst"]["gap"] < 0:
        return overshot(output["worst"])
    if output["holds"] is False:
        return "Retained", f"It still answers as one that knows {about}: {told(output['worst'])}."
    for one in found:
        if one["holds"] is None:
            return "Inconclusive", f"{one['title']} cannot be told: {why_open(one)}."
    if inside["holds"]:
        return (
            "Erased",
            f"It answers like gold, and its features tell no more than gold's of {about}.",
        )
    return leaking(inside, about, names_it=output["worst"]["side"] == "above")


def leaking(inside: Row, about: str, *, names_it: bool) -> tuple[Name, str]:
    """The word where the output is forgotten and the inside is not as in gold.

    `names_it`: whether the forgotten has a name of its own among the answers.
    """
    failed = [c for c in inside["checks"] if c["holds"] is False]
    leaks = [c for c in failed if (c["gap"] > 0) == (c["side"] != "below")]
    if not leaks:
        return overshot(inside["worst"])
    # A probe that reads the class says more to a person than a likeness does.
    worst = max(leaks, key=lambda c: (c["reading"] in PROBES, abs(c["gap"]) - c["tolerance"]))
    shown = told(worst)
    if inside["name"] == "membership":
        return "Masked", f"It answers like gold, but still tells that it has seen {about}: {shown}."
    if not names_it:
        return "Masked", f"It answers like gold, but its features still know {about}: {shown}."
    return "Masked", f"It no longer says {about}, but its features still know: {shown}."


def overshot(check: Row) -> tuple[Name, str]:
    """The word for a model that differs from gold on the far side of the original."""
    return "Inconclusive", f"It went past gold, which is damage, not forgetting: {told(check)}."


def told(check: Row | None) -> str:
    """A check in words: reading, value, gold's value and what was allowed."""
    if check is None:
        return "nothing could be read"
    where = f" at {check['tap']}" if check["tap"] else ""
    value, gold = (f"{100 * check[k]:.1f} %" for k in ("unlearned", "gold"))
    return (
        f"{spoken(check['title'])}{where} reads {value}, gold {gold}"
        f" (gap {100 * check['gap']:+.1f}, allowed {100 * check['tolerance']:.1f} points)"
    )


def spoken(title: str) -> str:
    """A title within a sentence: "linear probe", but "MLP probe" and "rMIA"."""
    return title if title[1:2].isupper() else title[:1].lower() + title[1:]


def why_open(criterion: Row) -> str:
    """The first reason why a criterion is open."""
    for c in criterion["checks"]:
        if c["unavailable"]:
            return f"{spoken(c['title'])} is not available, {c['unavailable']}"
        if c["holds"] is not None:
            continue
        if c["gap"] is None:
            return f"{spoken(c['title'])} has no gold reading"
        if beyond(c["gap"], c["tolerance"], c["side"]):
            return f"{told(c)}, by less than its 95 % interval"
        return f"the interval of {spoken(c['title'])} is wider than what is allowed"
    return "no check could be made"
