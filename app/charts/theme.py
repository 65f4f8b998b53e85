"""Theme: what each colour, shape and dash means, on light and on dark."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import plotly.graph_objects as go

FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", Arial, sans-serif'
TEXT_CONTRAST = 4.5
"""Least contrast of text (WCAG 2.2, 1.4.3)."""
MARK_CONTRAST = 3.0
"""Least contrast of a class's marks (WCAG 2.2, 1.4.11)."""

NAMES = {"original": "Original", "unlearned": "Unlearned", "gold": "Gold"}
COLOURS = {"original": "#5B7083", "unlearned": "#D55E00", "gold": "#E0A100"}
SYMBOLS = {"original": "circle-open", "unlearned": "circle", "gold": "diamond"}
DASHES = {"original": "solid", "unlearned": "dash", "gold": "dot"}
FORGET = "#CC2F7B"

# Okabe and Ito's colours without vermilion, which is the unlearned model's, and black, the text's.
_OKABE_ITO = ("#0072B2", "#009E73", "#56B4E9", "#E69F00", "#CC79A7", "#F0E442")
_TWENTY = (
    "#882255", "#332288", "#7F5B3A", "#44AA99", "#AA4499", "#117733", "#CC6677", "#7A76D6",
    "#999933", "#661100", "#4477AA", "#C26E3B", "#6B7F2A", "#9C5FC4", "#2F6F73", "#A8577E",
    "#3D8BD0", "#5A3C5A", "#4F9D55", "#B07AA1",
)  # fmt: skip
_CLASS_SYMBOLS = ("circle", "square", "triangle-up", "star", "cross", "pentagon", "hexagram")


def rgb(colour: str) -> tuple[int, int, int]:
    """Red, green and blue of `#rrggbb`, 0 to 255."""
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def luminance(colour: str) -> float:
    """Relative luminance in [0, 1] (WCAG 2.2)."""
    parts = (c / 255 for c in rgb(colour))
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(first: str, second: str) -> float:
    """Contrast ratio in [1, 21] (WCAG 2.2)."""
    low, high = sorted((luminance(first), luminance(second)))
    return (high + 0.05) / (low + 0.05)


def mixed(colour: str, other: str, share: float) -> str:
    """`colour` with a `share` in [0, 1] of `other`."""
    pairs = zip(rgb(colour), rgb(other), strict=True)
    return "#" + "".join(f"{round(a + share * (b - a)):02X}" for a, b in pairs)


def faded(colour: str, opacity: float) -> str:
    """`colour` as `rgba(...)`, for fills."""
    red, green, blue = rgb(colour)
    return f"rgba({red},{green},{blue},{opacity:g})"


@lru_cache(maxsize=512)
def readable(colour: str, grounds: tuple[str, ...], least: float) -> str:
    """The nearest mixture of `colour` with black or white that stands out from all `grounds`."""
    towards = "#FFFFFF" if luminance(grounds[0]) < 0.18 else "#000000"
    for step in range(101):
        found = mixed(colour, towards, step / 100)
        if all(contrast(found, ground) >= least for ground in grounds):
            return found
    return towards


def on(colour: str) -> str:
    """Black or white, whichever is easier to read on `colour`."""
    return max("#000000", "#FFFFFF", key=lambda ink: contrast(ink, colour))


@dataclass(frozen=True)
class Theme:
    """Colours on one background; what is not derived is named after what it paints."""

    name: str
    ink: str
    muted: str
    paper: str
    panel: str
    grid: str

    @property
    def grounds(self) -> tuple[str, str]:
        """What text may lie on."""
        return self.paper, self.panel

    def mark(self, model: str) -> str:
        """Colour of the model's marks: the same in both themes."""
        return COLOURS[model]

    def edge(self, model: str) -> str:
        """Colour of the outline of its marks, where the mark alone would be faint."""
        return readable(COLOURS[model], self.grounds, MARK_CONTRAST)

    def text(self, model: str) -> str:
        """Colour of text about the model."""
        return readable(COLOURS[model], self.grounds, TEXT_CONTRAST)

    @property
    def forget(self) -> str:
        """Colour of the ring round what was to be forgotten: the same in both themes."""
        return FORGET

    @property
    def forget_text(self) -> str:
        """Colour of text about what was to be forgotten."""
        return readable(FORGET, self.grounds, TEXT_CONTRAST)

    @property
    def classes(self) -> tuple[str, ...]:
        """Colours of classes; beyond the last they start again, with another shape."""
        wanted = _OKABE_ITO + _TWENTY
        return tuple(readable(c, self.grounds, MARK_CONTRAST) for c in wanted)

    def of_class(self, label: int) -> tuple[str, str]:
        """Colour and marker of a class; -1, no answer, is a muted cross."""
        if label < 0:
            return self.muted, "x"
        colours = self.classes
        turn, place = divmod(label, len(colours))
        return colours[place], _CLASS_SYMBOLS[turn % len(_CLASS_SYMBOLS)]


LIGHT = Theme("light", "#1D252C", "#5F6B76", "#FFFFFF", "#F7F8F9", "#E3E7EA")
DARK = Theme("dark", "#E8EAED", "#9AA4AF", "#0F1318", "#171C23", "#2A313A")
THEMES = {"light": LIGHT, "dark": DARK}


def template(theme: Theme) -> go.layout.Template:
    """Plotly's template of a theme; pass `theme=None` to Streamlit, or it paints over it."""
    bare = "rgba(0,0,0,0)"
    hover = {"family": FONT, "size": 13, "color": theme.ink}
    return go.layout.Template(
        layout={
            "font": {"family": FONT, "size": 13, "color": theme.ink},
            "paper_bgcolor": theme.paper,
            "plot_bgcolor": theme.panel,
            "colorway": list(COLOURS.values()),
            "xaxis": _axis(theme),
            "yaxis": _axis(theme),
            "margin": {"l": 8, "r": 8, "t": 28, "b": 8},
            "hoverlabel": {
                "bgcolor": theme.paper,
                "bordercolor": theme.muted,
                "font": hover,
                "align": "left",
            },
            "legend": {
                "orientation": "h",
                "x": 0,
                "y": 1.02,
                "xanchor": "left",
                "yanchor": "bottom",
                "font": {"size": 12, "color": theme.ink},
                "bgcolor": bare,
            },
            "modebar": {"bgcolor": bare, "color": theme.muted, "activecolor": theme.ink},
        }
    )


def _axis(theme: Theme) -> dict[str, Any]:
    return {
        "gridcolor": theme.grid,
        "linecolor": theme.grid,
        "zerolinecolor": theme.grid,
        "tickfont": {"size": 12, "color": theme.muted},
        "title": {"font": {"size": 12, "color": theme.muted}, "standoff": 6},
        "automargin": True,
    }


def dressed(figure: go.Figure, theme: Theme, height: int, **layout: Any) -> go.Figure:
    """`figure` in the theme, `height` in pixels; it keeps zoom and camera between reruns."""
    return figure.update_layout(
        template=template(theme), height=height, uirevision="kept", **layout
    )
