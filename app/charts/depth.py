"""Depth: where along the network the forgotten can still be read."""

from collections.abc import Mapping, Sequence
from typing import Any

import plotly.graph_objects as go

from app.charts import MODELS, Chart, Row
from app.charts.panels import bands, dot, grid, head, key, level, line, place
from app.charts.table import table
from app.charts.text import amount, listed, safe, short
from app.charts.theme import NAMES, Theme, dressed

Entry = Mapping[str, Any]
"""One reading at one tap: an entry of the report's `depth`."""

CHANCE = 0.5
"""What a probe reads, in balanced accuracy, where there is nothing to read."""
INTERVALS = {"original": "original_interval", "unlearned": "interval", "gold": "gold_range"}
"""Where a model's band comes from: samples, or for gold the range over its seeds."""
ACROSS = 3
ROW_HEIGHT = 250


def draw(
    entries: Sequence[Entry], taps: Mapping[str, Sequence[str]], theme: Theme, *, target: str = ""
) -> Chart:
    """A panel a reading along the taps, for the three models with bands."""
    names = list(dict.fromkeys(e["name"] for e in entries))
    order = places(entries, taps)
    across = min(ACROSS, max(1, len(names)))
    down = max(1, -(-len(names) // across))
    figure = grid(down, across, horizontal_spacing=0.06, vertical_spacing=0.34 / down)
    models = [m for m in MODELS if any(e.get(m) is not None for e in entries)]
    for i, name in enumerate(names):
        cell = (i // across + 1, i % across + 1)
        panel(figure, [e for e in entries if e["name"] == name], order, models, cell, theme)
    key(figure, models, theme, "lines+markers")
    height = down * ROW_HEIGHT + 60
    # The legend's place is a share of the plot, the room it needs is not.
    dressed(figure, theme, height, margin={"t": 62}, legend={"y": 1 + 30 / (height - 90)})
    figure.update_xaxes(categoryorder="array", categoryarray=[safe(t) for t in order])
    figure.update_xaxes(tickfont={"size": 11}, range=[-0.3, len(order) - 0.7], type="category")
    title = headline(entries, target)
    return Chart(figure, title, told(names, order, title), twin(entries))


def places(entries: Sequence[Entry], taps: Mapping[str, Sequence[str]]) -> list[str]:
    """All taps in order: those of the original first, those that only others have at the end."""
    wanted = [t for model in MODELS for t in taps.get(model, ())] + [e["tap"] for e in entries]
    return list(dict.fromkeys(wanted))


def panel(
    figure: go.Figure,
    entries: Sequence[Entry],
    order: Sequence[str],
    models: Sequence[str],
    cell: tuple[int, int],
    theme: Theme,
) -> None:
    """One reading's lines and bands along the taps."""
    by_tap = {e["tap"]: e for e in entries}
    first, names = entries[0], [safe(t) for t in order]
    for model in models:
        ends = [by_tap.get(t, {}).get(INTERVALS[model]) or (None, None) for t in order]
        lows, highs = [e[0] for e in ends], [e[1] for e in ends]
        for trace in bands(names, lows, highs, model, theme):
            figure.add_trace(trace, *cell)
    for model in models:
        figure.add_trace(curve(by_tap, order, model, theme), *cell)
    unit = first["unit"]
    if is_probe(first):
        rule = {"color": theme.muted, "width": 1, "dash": "dot"}
        level(figure, CHANCE, cell, rule)
        x, y = place(figure, *cell)
        figure.add_annotation(
            text="chance", x=1, xref=f"{x} domain", y=CHANCE, yref=y, xanchor="right",
            yanchor="bottom", showarrow=False, font={"size": 11, "color": theme.muted},
        )  # fmt: skip
    shown = "" if unit == "ratio" else unit
    form: dict[str, Any] = {"tickformat": ".0%"} if unit == "fraction" else {"title": shown}
    figure.update_yaxes(row=cell[0], col=cell[1], nticks=6, **form)
    head(figure, safe(short(first["title"], 34)), theme.ink, *cell)


def curve(
    by_tap: Mapping[str, Entry], order: Sequence[str], model: str, theme: Theme
) -> go.Scatter:
    """One model's values; a gap where there is none."""
    rows = [by_tap.get(tap, {}) for tap in order]
    said = [
        f"{NAMES[model]} at {safe(tap)}: {amount(row.get(model), row.get('unit', ''))}"
        for tap, row in zip(order, rows, strict=True)
    ]
    return go.Scatter(
        x=[safe(tap) for tap in order],
        y=[row.get(model) for row in rows],
        mode="lines+markers",
        line=line(model, theme),
        marker=dot(model, theme, 8),
        customdata=said,
        hovertemplate="%{customdata}<extra></extra>",
        showlegend=False,
    )


def is_probe(entry: Entry) -> bool:
    """Whether chance means something for this reading."""
    return "probe" in entry["name"] and entry["unit"] == "fraction"


def readable(entries: Sequence[Entry]) -> dict[str, list[str]]:
    """Taps, by reading, at which a probe reads the unlearned model clearly better than any gold.

    Clearly: the whole interval lies above the range of the golds.
    """
    found: dict[str, list[str]] = {}
    for e in entries:
        if is_probe(e) and e.get("interval") and e.get("gold_range"):
            taps = found.setdefault(e["name"], [])
            if e["interval"][0] > e["gold_range"][1]:
                taps.append(e["tap"])
    return found


def headline(entries: Sequence[Entry], target: str) -> str:
    """Where probes still read more than in gold; empty without a probe or gold."""
    by_name = readable(entries)
    if not by_name:
        return ""
    order = list(dict.fromkeys(e["tap"] for e in entries))
    open_taps = [t for t in order if any(t in taps for taps in by_name.values())]
    who = target or "What was to be forgotten"
    if not open_taps:
        return f"No probe reads {target or 'it'} better than in gold, at any of {len(order)} taps"
    return f"{who} can still be read at {len(open_taps)} of {len(order)} taps: {listed(open_taps)}"


def told(names: Sequence[str], order: Sequence[str], title: str) -> str:
    """The picture in words."""
    end = f" {title}." if title else ""
    return f"{len(names)} readings along the taps {listed(order)}, by model.{end}"


def twin(entries: Sequence[Entry]) -> list[Row]:
    """The table twin, a row a reading and tap."""
    ends = [f"{model} {side}" for model in MODELS for side in ("from", "to")]
    names = ("reading", "tap", "unit", *MODELS, *ends, "n", "not available")
    lines = []
    for e in entries:
        known = [v for key in INTERVALS.values() for v in (e.get(key) or (None, None))]
        values = [e.get(model) for model in MODELS]
        why = e.get("unavailable")
        lines.append((e["title"], e["tap"], e["unit"], *values, *known, e.get("n"), why))
    return table(names, lines)
