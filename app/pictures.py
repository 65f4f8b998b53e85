"""Pictures: images of a data set as HTML, small and safe."""

import base64
import io
from collections.abc import Sequence
from functools import lru_cache
from html import escape

import numpy as np
import torch
from PIL import Image

from core.data import load
from core.data.examples import Dataset


@lru_cache(maxsize=4096)
def uri(name: str, digest: str, sample: int) -> str:
    """One image as a `data:` address; `digest` tells two data sets of one name apart."""
    pixels = image(load(name), sample)
    shown = pixels[..., 0] if pixels.shape[2] == 1 else pixels[..., :3]
    file = io.BytesIO()
    Image.fromarray(shown).save(file, "PNG")
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"


def image(data: Dataset, sample: int) -> np.ndarray:
    """The image with this id (h w c, uint8)."""
    return data.by_id(torch.tensor([sample])).x[0].permute(1, 2, 0).numpy()


def label(data: Dataset, sample: int) -> str:
    """Its class name."""
    return data.classes[int(data.by_id(torch.tensor([sample])).y[0])]


def thumbnail(data: Dataset, sample: int, size: int, extra: str = "") -> str:
    """One image as an `img` element of `size` pixels; its name and id are its text."""
    text = escape(f"{label(data, sample)}, id {sample}", quote=True)
    source = uri(data.name, data.digest, sample)
    return (
        f'<img src="{source}" width="{size}" height="{size}" alt="{text}" title="{text}"'
        f' style="{extra}">'
    )


def thumbnails(data: Dataset, ids: Sequence[int], size: int) -> str:
    """Images in a row that wraps."""
    return f'<div class="fs-thumbs">{"".join(thumbnail(data, i, size) for i in ids)}</div>'
