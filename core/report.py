"""Report: a finished run for reading, as text and as a page that stands alone."""

import math
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

Json = dict[str, Any]
Row = Sequence[str]

HEADS = ("reading", "original", "unlearned", "gold", "gap to gold", "95 % interval of the gap")
HOLDS = {True: "holds", False: "does not hold", None: "cannot be told"}

LIMITS = (
    "The readings are of one model, one target and one data set; they say nothing of others.",
    "A probe that finds nothing shows that this probe finds nothing, not that nothing is there.",
    "Gold is a handful of retrained models: its spread is an estimate.",
    "Intervals are over samples of the data at hand; they do not cover another seed of the method.",
    "This is no proof of deletion in the sense of any law.",
)


def number(value: float | None, unit: str = "") -> str:
    """A reading for people: fractions in per cent, others to three digits, with their unit."""
    if value is None or not math.isfinite(value):
        return "-"
    if unit == "fraction":
        return f"{100 * value:.1f} %"
    plain = f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return f"{plain} {unit}".strip()


def signed(value: float | None, unit: str = "") -> str:
    """A gap for people; fractions in percentage points."""
    if value is None or not math.isfinite(value):
        return "-"
    text = number(abs(value), unit).replace("%", "points")
    return f"{'-' if value < 0 else '+'}{text}"


def cells(row: Json, name: str = "") -> Row:
    """One reading as HEADS says."""
    name, unit = name or row["title"], row["unit"]
    if row["unavailable"]:
        return (name, f"not available, {row['unavailable']}")
    gap = row["gap_interval"]
    interval = "-" if gap is None else f"{signed(gap[0], unit)} to {signed(gap[1], unit)}"
    values = [number(row[who], unit) for who in ("original", "unlearned", "gold")]
    return (name, *values, signed(row["gap"], unit), interval)


def text(report: Json) -> str:
    """The report for a terminal."""
    verdict = report["verdict"]
    lines = [report["title"], f"{verdict['name']}: {verdict['reason']}", ""]
    lines += [f"{mark(c['holds'])} {c['title']}" for c in verdict["criteria"]]
    lines += ["", *table(map(cells, report["readings"]))]
    if report["note"]:
        lines += ["", report["note"]]
    seconds = {k: v for k, v in report["seconds"].items() if v is not None}
    lines += ["", "seconds: " + ", ".join(f"{k} {v:.3g}" for k, v in seconds.items())]
    return "\n".join([*lines, f"key: {report['key']}", ""])


def mark(holds: bool | None) -> str:
    """Yes, no, or open."""
    return {True: "[yes]", False: "[no] ", None: "[ ?] "}[holds]


def table(rows: Iterable[Row]) -> list[str]:
    """Rows under HEADS in columns; a row of two is a name and a remark."""
    rows = [HEADS, *rows]
    widths = [max(len(r[i]) for r in rows if len(r) == len(HEADS)) for i in range(len(HEADS))]
    widths[0] = max(len(r[0]) for r in rows)
    lines = []
    for row in rows:
        padded = [row[0].ljust(widths[0])]
        if len(row) == 2:
            padded.append(row[1])
        else:
            padded += [cell.rjust(w) for cell, w in zip(row[1:], widths[1:], strict=True)]
        lines.append("  ".join(padded).rstrip())
    return lines


STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; margin: 1rem 0; }
th, td { padding: .3rem .6rem; border-bottom: 1px solid GrayText; text-align: right; }
th:first-child, td:first-child, td[colspan] { text-align: left; }
.verdict { border: 2px solid; border-radius: .5rem; padding: .5rem 1rem; }
code { overflow-wrap: anywhere; }
"""


def html(report: Json) -> str:
    """The report as one HTML file: no script, nothing from elsewhere, every value escaped."""
    verdict, recipe = report["verdict"], report["recipe"]
    depth = (cells(row, f"{row['title']}, {row['tap']}") for row in report["depth"])
    unlearner = recipe["unlearner"]
    facts = {
        "data set": recipe["dataset"],
        "data SHA-256": report["data"]["digest"],
        "licence of the data": report["data"]["licence"],
        "model": recipe["model"],
        "forget target": recipe["target"],
        "unlearner": unlearner["name"],
        **{f"knob {name}": value for name, value in unlearner["settings"].items()},
        "seed": recipe["seed"],
        "gold models": recipe["golds"],
        **{f"read of the {name} set": f"{n} images" for name, n in report["data_read"].items()},
        "key": report["key"],
    }
    took = {k: number(v, "s") for k, v in report["seconds"].items() if v is not None}
    parts = [
        f"<h1>{safe(report['title'])}</h1>",
        f'<div class="verdict"><h2>{safe(verdict["name"])}</h2><p>{safe(verdict["reason"])}</p>',
        f"</div><h2>What the verdict rests on</h2>{''.join(map(criterion, verdict['criteria']))}",
        f"<h2>Readings</h2>{html_table(map(cells, report['readings']))}",
        f"<h2>Along depth</h2>{html_table(depth)}",
        f"<h2>Recipe</h2>{pairs(facts)}",
        f"<p>{safe(report['note'])}</p>" if report["note"] else "",
        f"<h2>Time</h2>{pairs(took)}<h2>Versions</h2>{pairs(report['versions'])}",
        f"<h2>What this does not prove</h2><ul>{''.join(f'<li>{safe(s)}</li>' for s in LIMITS)}",
        "</ul>",
    ]
    head = f'<meta charset="utf-8"><title>{safe(report["title"])}</title><style>{STYLE}</style>'
    view = '<meta name="viewport" content="width=device-width, initial-scale=1">'
    body = "\n".join(parts)
    return f'<!doctype html><html lang="en"><head>{head}{view}</head><body>{body}</body></html>\n'


def criterion(row: Json) -> str:
    """One criterion with its checks."""
    head = f"<h3>{safe(row['title'])}: {HOLDS[row['holds']]}</h3>"
    heads = ("check", "unlearned", "gold", "gap", "allowed", "")
    body = "".join(line(check_cells(check), len(heads)) for check in row["checks"])
    return f"{head}<table>{line(heads, len(heads), 'th')}{body}</table>"


def check_cells(check: Json) -> Row:
    """One check of a criterion; all checks are of fractions."""
    name = check.get("title") or check["reading"]
    if check["tap"]:
        name = f"{name}, {check['tap']}"
    values = [number(check[who], "fraction") for who in ("unlearned", "gold")]
    allowed = number(check["tolerance"], "fraction").replace("%", "points")
    return (name, *values, signed(check["gap"], "fraction"), allowed, HOLDS[check["holds"]])


def html_table(rows: Iterable[Row]) -> str:
    """Rows under HEADS."""
    body = "".join(line(row, len(HEADS)) for row in rows)
    return f"<table>{line(HEADS, len(HEADS), 'th')}{body}</table>"


def line(row: Row, width: int, tag: str = "td") -> str:
    """One row; the last cell of a short one is as wide as those that are missing."""
    *most, last = (safe(cell) for cell in row)
    missing = width - len(row)
    wide = f' colspan="{missing + 1}"' if missing else ""
    inner = "".join(f"<{tag}>{cell}</{tag}>" for cell in most)
    return f"<tr>{inner}<{tag}{wide}>{last}</{tag}></tr>"


def pairs(values: Json) -> str:
    """A table of names and values."""
    rows = "".join(line((name, str(value)), 2) for name, value in values.items())
    return f"<table>{rows}</table>"


def safe(value: object) -> str:
    """Text that a browser shows as it is."""
    return escape(str(value))
