"""Comparison: the finished runs on one target, as the Compare page shows them."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from app.address import Ask
from app.charts import Chart, trilemma
from app.charts.text import amount, signed
from app.charts.theme import Theme, faded
from app.charts.trilemma import Axis, Gold, Mark
from core import compare, sweep
from core.compare import Entry, Spread
from core.data.targets import Level
from core.registry import describe
from core.runs import Runs
from core.unlearners import UNLEARNERS

if TYPE_CHECKING:
    import pandas as pd
    from pandas.io.formats.style import Styler

CONTROLS = frozenset(name for name, kind in UNLEARNERS.items() if kind.control)
COLUMNS = {
    "class": ("forget_accuracy_test", "retain_accuracy_test", "aus", "rus_r", "probe_linear",
              "probe_mlp", "rmia", "kl_forget", "relearn_steps"),
    "subclass": ("forget_accuracy_test", "retain_accuracy_test", "rus_r", "probe_linear",
                 "probe_mlp", "rmia", "kl_forget"),
    "instance": ("forget_accuracy_train", "retain_accuracy_test", "rmia", "u_mia", "balance",
                 "structural_collapse", "rus_r", "kl_forget"),
}  # fmt: skip
HEADS = {
    "forget_accuracy_test": "Forget acc.",
    "forget_accuracy_train": "Forget acc. (seen)",
    "retain_accuracy_test": "Retained acc.",
    "aus": "AUS",
    "rus_r": "RUS to gold",
    "probe_linear": "Linear probe",
    "probe_mlp": "MLP probe",
    "rmia": "rMIA",
    "u_mia": "U-MIA",
    "balance": "Balance H",
    "structural_collapse": "Structural collapse",
    "kl_forget": "KL to gold, forget",
    "relearn_steps": "Relearn steps",
}
INSIDE = "Worst probe gap"
FAR = {"fraction": 0.2, "nats": 2.0}
"""Gap to gold at which a cell has its full colour; a pure number's is 0.5."""


def rows(runs: Runs, ask: Ask) -> list[dict[str, Any]]:
    """Readings of all runs that are kept on this target; shipped ones where there is none."""
    recipe = ask.recipe
    mine = [dict(row) for record in runs.kept(recipe) for row in sweep.rows(record)]
    known = {_run(row) for row in mine}
    shipped = sweep.shipped(recipe, runs.assets)
    return mine + [row for row in shipped if _run(row) not in known]


def _run(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["unlearner"], row.get("settings") or "", row["seed"]


def title(entry: Entry) -> str:
    """A method's title with what is not at its default."""
    kind = UNLEARNERS.get(entry.unlearner)
    name = describe(kind)[0] if kind else entry.unlearner
    return f"{name} ({entry.settings})" if entry.settings else name


def picture(found: list[Entry], rows: list[dict[str, Any]], level: Level, theme: Theme) -> Chart:
    """The trilemma of `entries` and `rows`."""
    best = compare.front(found, level, CONTROLS)
    attack = "Membership attack" if level == "instance" else "Strongest probe"
    box = gold(compare.box(rows, level))
    return trilemma.draw(marks(found, level, best), box, theme, attack=attack)


def script(ask: Ask, theme: Theme) -> str:
    """The Python that makes the picture."""
    words = {k: v for k, v in ask.words().items() if k in ("dataset", "forget", "model", "golds")}
    return (
        '"""The trilemma, as Forgetscope draws it."""\n\n'
        "from app import address, comparison\n"
        f"from app.charts.theme import {theme.name.upper()}\n"
        "from core import compare\nfrom core.runs import Runs\n\n"
        f"ask = address.read({words!r})\nlevel = ask.target.level\n"
        "rows = comparison.rows(Runs(), ask)\nfound = compare.entries(rows, level)\n"
        f"chart = comparison.picture(found, rows, level, {theme.name.upper()})\n"
        'print(chart.title)\nchart.figure.write_html("trilemma.html")\n'
    )


def marks(found: Iterable[Entry], level: str, best: set[str]) -> list[Mark]:
    """What the trilemma shows: entries with all three readings."""
    out = []
    for e in found:
        said, kept = (e.readings.get(n) for n in (compare.output_of(level), compare.UTILITY))
        if said and kept and e.inside:
            axes = (axis(said), axis(kept), axis(e.inside))
            control = e.unlearner in CONTROLS
            out.append(Mark(e.name, title(e), e.verdict, *axes, control, e.name in best))
    return out


def axis(spread: Spread) -> Axis:
    """As a chart takes it."""
    return spread.value, spread.low, spread.high


def gold(found: compare.Box | None) -> Gold | None:
    """As a chart takes it."""
    return None if found is None else Gold(found.output, found.utility, found.inside)


def order(found: Iterable[Entry]) -> list[Entry]:
    """Methods by what they leave inside, then controls, then what failed."""

    def place(entry: Entry) -> tuple[bool, bool, float]:
        value = entry.inside.value if entry.inside else 1.0
        return entry.failure != "", entry.unlearner in CONTROLS, value

    return sorted(found, key=place)


def table(found: list[Entry], level: str, best: set[str], theme: Theme) -> "Styler":
    """A row a method; each reading with its ends, coloured by its distance to gold.

    Cells are numbers, so that a click on a head sorts by them; what is read is text.
    """
    import pandas as pd

    names = COLUMNS[level]
    inside = INSIDE if level != "instance" else "Attack gap"
    lines = []
    for e in found:
        line: dict[str, Any] = {
            "Method": title(e),
            "Verdict": e.verdict or e.failure,
            "Front": "★" if e.name in best else "",
            "Seeds": len(e.keys),
        }
        line |= {HEADS[n]: e.readings[n].value if n in e.readings else None for n in names}
        line |= {inside: e.inside.value if e.inside else None, "Seconds": e.seconds}
        lines.append(line)
    shades = pd.DataFrame("", range(len(found)), list(lines[0]))
    style: Styler = pd.DataFrame(lines).style
    style.format(lambda s: amount(s, "seconds"), subset=["Seconds"])
    for i, e in enumerate(found):
        cells = {HEADS[n]: e.readings.get(n) for n in names} | {inside: e.inside}
        shades.loc[i, list(cells)] = [shade(spread, theme) for spread in cells.values()]
        for column, spread in cells.items():
            text = told(spread) if column != inside else gap_told(spread)
            style.format(lambda _, text=text: text, subset=pd.IndexSlice[i, column])
    return style.apply(lambda _: shades, axis=None)


def told(spread: Spread | None) -> str:
    """A reading with its ends, short."""
    if spread is None:
        return "n/a"
    scale, digits = (100, 1) if spread.unit == "fraction" else (1, 2)
    ends = [f"{scale * v:.{digits}f}" for v in (spread.value, spread.low, spread.high)]
    unit = "%" if spread.unit == "fraction" else ""
    return f"{ends[0]}{unit} [{ends[1]}, {ends[2]}]"


def gap_told(spread: Spread | None) -> str:
    """A gap in points with its ends."""
    if spread is None:
        return "n/a"
    ends = [signed(100 * v, 1) for v in (spread.value, spread.low, spread.high)]
    return ends[0] if ends[1] == ends[2] else f"{ends[0]} [{ends[1]}, {ends[2]}]"


def shade(spread: Spread | None, theme: Theme) -> str:
    """A cell's CSS: the darker, the farther from gold; neither good nor bad."""
    if spread is None or spread.gap is None:
        return ""
    share = min(1.0, abs(spread.gap) / FAR.get(spread.unit, 0.5))
    ground = faded(theme.edge("original"), round(0.45 * share, 3))
    return f"background-color: {ground}; color: {theme.ink}"


def sentence(found: list[Entry], level: str) -> str:
    """What the runs say together."""
    methods = [e for e in found if e.unlearner not in CONTROLS and e.keys]
    if not methods:
        return "No method has been run on this target yet."
    said = compare.output_of(level)
    silent = [
        e for e in methods
        if said in e.readings and e.readings[said].gap is not None
        and (e.readings[said].gap or 0.0) <= 0.05
    ]  # fmt: skip
    erased = [e for e in methods if e.verdict == "Erased"]
    masked = [e for e in silent if "Masked" in e.verdict]
    text = f"{len(silent)} of {len(methods)} methods answer as if they had forgotten"
    if masked:
        text += f"; {len(masked)} of these still know it inside (Masked)"
    names = ", ".join(title(e) for e in erased)
    return text + (f". Erased: {names}." if erased else ". None is Erased.")


def options(found: list[Entry]) -> list[str]:
    """What can be put side by side: a text a run, as `address.picked` reads it."""
    return [e.name + (f" seed={seed}" if seed else "") for e in found for seed in e.keys]


def frame(found: list[Entry], level: str) -> "pd.DataFrame":
    """The table's numbers alone, with their ends, for a file."""
    import pandas as pd

    lines = []
    for e in found:
        line: dict[str, Any] = {"method": e.name, "title": title(e), "verdict": e.verdict}
        for name in COLUMNS[level]:
            spread = e.readings.get(name)
            for field in ("value", "low", "high", "gap"):
                line[f"{name} {field}"] = getattr(spread, field) if spread else None
        line |= {"inside gap": e.inside.value if e.inside else None, "seconds": e.seconds}
        lines.append(line | {"seeds": len(e.keys), "failure": e.failure})
    return pd.DataFrame(lines)
