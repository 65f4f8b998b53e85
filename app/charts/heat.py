"""Heat: an attribution map laid over its image, flat where there is no positive evidence."""

import base64
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from PIL import Image

from app.charts import MODELS
from app.charts.theme import FORGET, NAMES, rgb

Array = np.ndarray
SIZE = 112
"""Pixels of a side of what is drawn."""
STRENGTH = 0.85
"""Opacity where the map is 1."""

# Dark violet over red and orange to pale yellow: lightness rises throughout.
_ANCHORS = (
    "#1B0C41", "#4A0C6B", "#781C6D", "#A52C60", "#CF4446",
    "#ED6925", "#FB9B06", "#F7D13D", "#FCFFA4",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Overlay:
    """One picture of the grid."""

    image: Array
    """(SIZE SIZE 3) uint8."""
    flat: bool
    """Whether the map holds no positive evidence."""
    alt: str
    """Plain text."""

    @property
    def png(self) -> bytes:
        """The picture as PNG."""
        out = io.BytesIO()
        Image.fromarray(self.image).save(out, "PNG")
        return out.getvalue()

    @property
    def uri(self) -> str:
        """The picture as a `data:` address, for HTML."""
        return f"data:image/png;base64,{base64.b64encode(self.png).decode()}"


def colours(share: Array) -> Array:
    """Colours (... 3, float 0 to 255) of values in [0, 1]."""
    anchors = np.array([rgb(a) for a in _ANCHORS], float)
    stops = np.linspace(0, 1, len(anchors))
    return np.stack([np.interp(share, stops, anchors[:, c]) for c in range(3)], -1)


def picture(image: Array, *, grey: bool = False, size: int = SIZE) -> Array:
    """An image (h w), (h w 1), (h w 3) or (c h w), uint8 or float in [0, 1], as (size size 3)."""
    image = np.asarray(image)
    if image.ndim == 3 and image.shape[0] in (1, 3) and image.shape[2] not in (1, 3):
        image = image.transpose(1, 2, 0)
    if image.dtype != np.uint8:
        image = np.clip(np.round(255 * image.astype(float)), 0, 255).astype(np.uint8)
    shown = Image.fromarray(image[..., 0] if image.ndim == 3 and image.shape[2] == 1 else image)
    shown = shown.convert("L").convert("RGB") if grey else shown.convert("RGB")
    return np.asarray(shown.resize((size, size), Image.Resampling.BILINEAR))


def overlay(image: Array, cam: Array, *, who: str = "", size: int = SIZE) -> Overlay:
    """`cam` (h w, in [0, 1] on its row's scale) over `image` in grey.

    A map that is nowhere positive, or not finite, is drawn flat: never stretched into one.
    """
    cam = np.asarray(cam, np.float32)
    ground = picture(image, grey=True, size=size)
    flat = not np.isfinite(cam).all() or cam.max(initial=0) <= 0
    if flat:
        pale = np.round(0.5 * ground.astype(float) + 0.5 * 128).astype(np.uint8)
        return Overlay(pale, True, f"{who}: no positive evidence".lstrip(": "))
    grown = Image.fromarray(np.clip(cam, 0, 1)).resize((size, size), Image.Resampling.BILINEAR)
    share = np.clip(np.asarray(grown), 0, 1)
    weight = STRENGTH * share[..., None]
    mixed = (1 - weight) * ground + weight * colours(share)
    alt = f"{who}: evidence up to {100 * float(cam.max()):.0f} % of the row's largest"
    return Overlay(np.round(mixed).astype(np.uint8), False, alt.lstrip(": "))


def one_scale(cams: Mapping[str, Array]) -> dict[str, Array]:
    """The maps of one row, all divided by the largest value of any; negative evidence is cut."""
    cut = {m: np.clip(np.asarray(cams[m], np.float32), 0, None) for m in MODELS if m in cams}
    tops = [float(c.max(initial=0)) for c in cut.values() if np.isfinite(c).all()]
    top = max(tops, default=0.0)
    return {m: c / top if top > 0 else c for m, c in cut.items()}


def row(image: Array, cams: Mapping[str, Array], *, size: int = SIZE) -> dict[str, Overlay]:
    """The overlays of one image by model, in order, on one scale."""
    scaled = one_scale(cams)
    return {m: overlay(image, scaled[m], who=NAMES[m], size=size) for m in scaled}


def ringed(image: Array, width: int = 4) -> Array:
    """A copy of a picture (s s 3) with a frame in the forget class's colour."""
    out = np.array(image)
    for edge in (np.s_[:width], np.s_[-width:], np.s_[:, :width], np.s_[:, -width:]):
        out[edge] = rgb(FORGET)
    return out


def sheet(rows: Sequence[Sequence[Array]], gap: int = 4) -> bytes:
    """A grid of equal pictures (s s 3) as one PNG, for export."""
    size = rows[0][0].shape[0]
    out = np.full((len(rows) * (size + gap), len(rows[0]) * (size + gap), 3), 255, np.uint8)
    for i, line in enumerate(rows):
        for j, shown in enumerate(line):
            top, left = i * (size + gap), j * (size + gap)
            out[top : top + size, left : left + size] = shown
    file = io.BytesIO()
    Image.fromarray(out[:-gap, :-gap]).save(file, "PNG")
    return file.getvalue()


def scale_bar(width: int = 160, height: int = 10) -> bytes:
    """The colour scale from 0 to the row's largest value, as PNG."""
    shades = np.round(colours(np.linspace(0, 1, width))).astype(np.uint8)
    file = io.BytesIO()
    Image.fromarray(np.repeat(shades[None], height, 0)).save(file, "PNG")
    return file.getvalue()
