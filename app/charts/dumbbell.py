"""Dumbbells: each reading on a small axis of its own, original, unlearned and gold together."""

import base64
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.charts import MODELS, Row
from app.charts.table import table
from app.charts.text import amount, attribute, change, plain, short
from app.charts.theme import FONT, Theme

Reading = Mapping[str, Any]
"""An entry of the report's `readings`."""

HEIGHT = 33
"""Pixels of an axis with its ends."""
_INSET = (5.0, 95.0)
"""Where the axis begins and ends, in percent of the cell: marks on the ends need room."""


@dataclass(frozen=True)
class Strip:
    """The strip as HTML that wraps to the width it gets, and as one SVG for export."""

    html: str
    svg: str
    title: str
    alt: str
    table: list[Row]


def draw(
    readings: Sequence[Reading], theme: Theme, *, labels: Mapping[str, str] | None = None
) -> Strip:
    """A strip of cells; `labels` gives shorter titles by the reading's name."""
    named = [dict(r) | {"title": (labels or {}).get(r["name"], r["title"])} for r in readings]
    cells = "".join(cell(r, theme) for r in named)
    grid = "display:grid;grid-template-columns:repeat(auto-fit,minmax(106px,1fr));gap:12px 16px"
    html = f'<div role="list" style="{grid};font-family:{attribute(FONT)}">{cells}</div>'
    alt = " ".join(spoken(r) for r in named)
    return Strip(html, sheet(named, theme), headline(named), alt, numbers(named))


def cell(reading: Reading, theme: Theme) -> str:
    """One reading as HTML: title, axis, the unlearned model's value, gold's value."""
    title, said = attribute(reading["title"]), attribute(spoken(reading))
    label = f"font-size:13px;line-height:17px;color:{theme.muted}"
    value = f"font-size:15px;line-height:20px;color:{theme.ink};white-space:nowrap"
    small = f"font-size:12px;line-height:16px;color:{theme.muted};white-space:nowrap"
    end = "display:flex;flex-direction:column;justify-content:flex-end;min-width:0"
    if reading.get("unavailable"):
        why = f"not available, {attribute(reading['unavailable'])}"
        body = f'<div style="{small};white-space:normal">{why}</div>'
    else:
        main, spread, gold = (attribute(text) for text in values(reading))
        body = (
            f'{picture(reading, theme)}<div style="{value}"><b>{main}</b>'
            f'<span style="{small}"> {spread}</span></div><div style="{small}">{gold}</div>'
        )
    return (
        f'<div role="listitem" aria-label="{said}" title="{said}" style="{end}">'
        f'<div style="{label}">{title}</div>{body}</div>'
    )


def picture(reading: Reading, theme: Theme) -> str:
    """The axis as an image in HTML: Streamlit's `st.html` lets images through, but no SVG.

    Without a view box it fills the width it gets, and its marks and letters keep their size.
    """
    data = base64.b64encode(axis(reading, theme).encode()).decode()
    style = f"display:block;width:100%;height:{HEIGHT}px"
    return f'<img alt="" style="{style}" src="data:image/svg+xml;base64,{data}">'


def values(reading: Reading) -> tuple[str, str, str]:
    """The unlearned value, its half interval, and gold's value with half its range."""
    unit, spread = reading["unit"], reading.get("interval")
    half = _half(spread, unit)
    gold = reading.get("gold")
    if gold is None:
        return amount(reading["unlearned"], unit), half, "no gold"
    return (
        amount(reading["unlearned"], unit),
        half,
        f"gold {amount(gold, unit)}"
        + (
            f" {_half(reading.get('gold_range'), unit)}"
            if len(reading.get("golds") or ()) > 1
            else ""
        ),
    )


def _half(ends: Sequence[float] | None, unit: str) -> str:
    if not ends:
        return ""
    scale, decimals = (100, 1) if unit == "fraction" else (1, 2)
    return f"± {plain(scale * abs(ends[1] - ends[0]) / 2, decimals)}"


def axis(reading: Reading, theme: Theme) -> str:
    """The axis as SVG with its ends written under it; it stretches, and marks keep their size."""
    low, high = span(reading)
    at = {m: _place(reading.get(m), low, high) for m in MODELS}
    parts = [_line(*_INSET, theme.grid, 2)]
    parts += _bar(reading.get("gold_range"), low, high, theme.mark("gold"), 12, 0.45)
    parts += _bar(reading.get("interval"), low, high, theme.mark("unlearned"), 2, 1)
    # Gold lies under the unlearned dot and is larger: where both agree, both are seen.
    parts += [_mark(model, at[model], theme) for model in ("gold", "original", "unlearned")]
    ends = [
        f'<text x="{x}%" y="20" font-size="10" fill="{theme.muted}" text-anchor="{anchor}">'
        f"{attribute(end)}</text>"
        for x, anchor, end in zip(
            (0, 100), ("start", "end"), _ends(reading, low, high), strict=True
        )
    ]
    look = f'width="100%" height="{HEIGHT}" font-family="{attribute(FONT)}"'
    inner = f'<svg y="10" overflow="visible">{"".join(parts + ends)}</svg>'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {look}>{inner}</svg>'


def span(reading: Reading) -> tuple[float, float]:
    """The axis's ends: round numbers round all that is shown, within the reading's range.

    At least a fifth of a finite range is shown, so that noise does not look like a difference.
    """
    shown = [reading.get(m) for m in MODELS]
    shown += [v for key in ("interval", "gold_range") for v in (reading.get(key) or ())]
    known = [v for v in shown if v is not None and math.isfinite(v)] or [0.0, 1.0]
    low, high = (reading.get("low"), reading.get("high"))
    floor = low if low is not None and math.isfinite(low) else -math.inf
    ceiling = high if high is not None and math.isfinite(high) else math.inf
    least = (ceiling - floor) / 5 if math.isfinite(ceiling - floor) else 1e-3
    width = max(max(known) - min(known), least)
    step = 10 ** math.floor(math.log10(width))
    step = step / 2 if width < 2.5 * step else step
    start = math.floor(min(known) / step + 1e-9) * step
    stop = math.ceil(max(known) / step - 1e-9) * step
    if stop - start < least:
        start = min(start, ceiling - least)
        stop = start + math.ceil(least / step - 1e-9) * step
    return max(start, floor), min(stop, ceiling)


def _ends(reading: Reading, low: float, high: float) -> tuple[str, str]:
    scale = 100 if reading["unit"] == "fraction" else 1
    decimals = max(0, -math.floor(math.log10(scale * (high - low)) + 1e-9) + 1)
    decimals = 0 if scale * (high - low) >= 2 else decimals
    return plain(scale * low, decimals), plain(scale * high, decimals)


def _place(value: float | None, low: float, high: float) -> float | None:
    if value is None or not math.isfinite(value):
        return None
    share = min(1.0, max(0.0, (value - low) / (high - low)))
    return _INSET[0] + (_INSET[1] - _INSET[0]) * share


def _line(start: float, end: float, colour: str, width: float, opacity: float = 1) -> str:
    return (
        f'<line x1="{start:.2f}%" x2="{end:.2f}%" y1="0" y2="0" stroke="{colour}"'
        f' stroke-width="{width}" stroke-opacity="{opacity}"/>'
    )


def _bar(
    ends: Sequence[float] | None, low: float, high: float, colour: str, width: float, opacity: float
) -> list[str]:
    if not ends:
        return []
    start, end = (_place(v, low, high) for v in ends)
    if start is None or end is None:
        return []
    return [_line(start, end, colour, width, opacity)]


def _mark(model: str, at: float | None, theme: Theme) -> str:
    if at is None:
        return ""
    colour = theme.mark(model)
    shape = {
        "original": f'<circle r="4.5" fill="{theme.paper}" stroke="{theme.edge(model)}"'
        ' stroke-width="2"/>',
        "unlearned": f'<circle r="4.5" fill="{colour}" stroke="{theme.paper}" stroke-width="1"/>',
        "gold": f'<path d="M-7 0L0 -7L7 0L0 7Z" fill="{colour}" stroke="{theme.edge(model)}"/>',
    }[model]
    return f'<svg x="{at:.2f}%" y="0" width="1" height="1" overflow="visible">{shape}</svg>'


def spoken(reading: Reading) -> str:
    """A reading in one sentence."""
    if reading.get("unavailable"):
        return f"{reading['title']}: not available, {reading['unavailable']}."
    unit = reading["unit"]
    said = [f"{m} {amount(reading[m], unit)}" for m in MODELS if reading.get(m) is not None]
    gap = reading.get("gap")
    end = "" if gap is None else f"; gap to gold {change(gap, unit)}"
    return f"{reading['title']}: {', '.join(said)}{end}."


def headline(readings: Sequence[Reading]) -> str:
    """Which of the fractions is farthest from gold; empty where none has a gap."""
    known = [r for r in readings if r["unit"] == "fraction" and r.get("gap") is not None]
    if not known:
        return ""
    worst = max(known, key=lambda r: abs(r["gap"]))
    return f"Farthest from gold: {worst['title']}, {change(worst['gap'], 'fraction')}"


def numbers(readings: Sequence[Reading]) -> list[Row]:
    """The strip's table twin, a row a reading."""
    names = ("reading", "unit", *MODELS, "unlearned from", "unlearned to", "gold from", "gold to",
        "n", "not available")  # fmt: skip
    lines = []
    for r in readings:
        ends = [*(r.get("interval") or (None, None)), *(r.get("gold_range") or (None, None))]
        models = [r.get(m) for m in MODELS]
        lines.append((r["title"], r["unit"], *models, *ends, r.get("n"), r.get("unavailable")))
    return table(names, lines)


def sheet(readings: Sequence[Reading], theme: Theme, width: int = 190) -> str:
    """The strip as one SVG of its own, four cells a row of `width` pixels each, for export."""
    across, height = 4, 104
    rows = -(-len(readings) // across)
    size = f'width="{across * width}" height="{rows * height}"'
    cells = []
    for i, r in enumerate(readings):
        down, right = divmod(i, across)
        place = f'x="{right * width}" y="{down * height}" width="{width - 24}" height="{height}"'
        cells.append(f"<svg {place}>{_sheet_cell(r, theme)}</svg>")
    ground = f'<rect width="100%" height="100%" fill="{theme.paper}"/>'
    opening = f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="{attribute(FONT)}">'
    return f"{opening}{ground}{''.join(cells)}</svg>"


def _sheet_cell(reading: Reading, theme: Theme) -> str:
    def line(y: int, size: int, colour: str, text: str) -> str:
        return f'<text x="1" y="{y}" font-size="{size}" fill="{colour}">{attribute(text)}</text>'

    top = line(16, 13, theme.muted, short(reading["title"], 26))
    if reading.get("unavailable"):
        return top + line(40, 12, theme.muted, "not available")
    main, spread, gold = values(reading)
    body = f'<svg y="24" height="{HEIGHT}" width="100%">{axis(reading, theme)}</svg>'
    return (
        f"{top}{body}{line(74, 14, theme.ink, f'{main} {spread}')}{line(91, 12, theme.muted, gold)}"
    )
