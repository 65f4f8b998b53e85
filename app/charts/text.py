"""Words and numbers as people read them, safe where Plotly or HTML would see tags."""

import math
from collections.abc import Sequence
from html import escape

MINUS = "\u2212"
SPACE = "\u202f"
"""A narrow space that does not break, between a number and its unit."""

UNITS = {"fraction": "%", "degrees": "°", "nats": "nats", "seconds": "s", "ratio": "", "": ""}
"""Units of readings, as shown; a unit that is not listed is shown as it is."""


def safe(text: object) -> str:
    """`text` so that Plotly shows it literally.

    Quotes stay: Plotly knows few entities, and would print `&quot;`.
    """
    return escape(" ".join(str(text).split()), quote=False)


def attribute(text: object) -> str:
    """`text` so that it may stand in an HTML or SVG attribute, or between tags."""
    return escape(" ".join(str(text).split()), quote=True)


def short(text: object, most: int = 14) -> str:
    """`text` cut to `most` characters, marked by an ellipsis. Not escaped."""
    plain = " ".join(str(text).split())
    return plain if len(plain) <= most else plain[: most - 1].rstrip() + "…"


def plain(number: float, decimals: int) -> str:
    """A number with a true minus sign, and no minus before zero."""
    text = f"{number:.{decimals}f}"
    if float(text) == 0:
        text = text.lstrip("-")
    return text.replace("-", MINUS)


def signed(number: float, decimals: int = 0) -> str:
    """A number with its sign, plus as well as minus; zero has none."""
    text = plain(number, decimals)
    return text if text.startswith(MINUS) or float(text) == 0 else f"+{text}"


def amount(number: float | None, unit: str = "", decimals: int | None = None) -> str:
    """`number` with its unit: a fraction as a percentage, degrees with their sign.

    `n/a` for what could not be read.
    """
    if number is None or math.isnan(number):
        return "n/a"
    if math.isinf(number):
        return f"{MINUS if number < 0 else ''}∞"
    shown = UNITS.get(unit, unit)
    scale, usual = (
        (100, 1) if unit == "fraction" else (1, 1 if unit in ("degrees", "seconds") else 2)
    )
    digits = plain(number * scale, usual if decimals is None else decimals)
    return digits + shown if shown == "°" else f"{digits}{SPACE}{shown}" if shown else digits


def change(number: float | None, unit: str = "") -> str:
    """A difference with its sign; differences of fractions are percentage points."""
    if number is None or math.isnan(number):
        return "n/a"
    if unit == "fraction":
        return f"{signed(100 * number, 1)}{SPACE}points"
    return ("+" if number > 0 else "") + amount(number, unit)


def listed(names: Sequence[object]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    words = [str(name) for name in names]
    return " and ".join([", ".join(words[:-1]), words[-1]] if words[1:] else words)


def named(classes: Sequence[str], label: int) -> str:
    """The class's name; -1 is the model's silence."""
    return "no answer (tie)" if label < 0 else classes[label]
