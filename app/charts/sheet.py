"""Sheet: small images in rows, to be picked by a click."""

from collections.abc import Collection, Sequence

import numpy as np
import plotly.graph_objects as go

from app.charts import Chart
from app.charts.table import table
from app.charts.text import safe
from app.charts.theme import Theme, dressed

ACROSS = 10
SIDE = 62
"""Pixels of a cell."""


def draw(
    images: np.ndarray,
    ids: Sequence[int],
    names: Sequence[str],
    chosen: Collection[int],
    theme: Theme,
) -> Chart:
    """Images (n h w c, uint8) with their ids and class names; those that are chosen are ringed.

    A mark's `customdata` starts with the id of its image.
    """
    down = max(1, -(-len(ids) // ACROSS))
    figure = go.Figure()
    figure.add_trace(_picture(images, down))
    spots = [(i % ACROSS, i // ACROSS) for i in range(len(ids))]
    mine = [i in chosen for i in ids]
    ring = [theme.forget if one else "rgba(0,0,0,0)" for one in mine]
    said = [f"{safe(n)} · {i}" for n, i in zip(names, ids, strict=True)]
    figure.add_trace(
        go.Scatter(
            x=[x for x, _ in spots],
            y=[y for _, y in spots],
            mode="markers",
            marker={
                "symbol": "square", "size": SIDE - 8, "color": "rgba(0,0,0,0)",
                "line": {"color": ring, "width": 4},
            },
            selected={"marker": {"opacity": 1}},
            unselected={"marker": {"opacity": 1}},
            customdata=[[i] for i in ids],
            hovertext=said,
            hovertemplate="%{hovertext}<extra></extra>",
            showlegend=False,
        )
    )  # fmt: skip
    dressed(figure, theme, down * SIDE + 16, margin={"l": 0, "r": 0, "t": 8, "b": 8})
    figure.update_layout(dragmode=False, hovermode="closest")
    figure.update_xaxes(visible=False, range=[-0.5, ACROSS - 0.5], fixedrange=True)
    figure.update_yaxes(visible=False, range=[down - 0.5, -0.5], fixedrange=True, scaleanchor="x")
    count = sum(mine)
    title = f"{count} of these {len(ids)} images {'is' if count == 1 else 'are'} chosen"
    alt = f"A sheet of {len(ids)} images in rows of {ACROSS}. {title}."
    rows = table(("id", "class", "chosen"), zip(ids, names, mine, strict=True))
    return Chart(figure, title, alt, rows)


def _picture(images: np.ndarray, down: int) -> go.Image:
    """All images as one picture of the sheet's cells."""
    n, h, w = images.shape[:3]
    colour = np.broadcast_to(images, (n, h, w, 3)) if images.shape[3] == 1 else images
    sheet = np.zeros((down * ACROSS, h, w, 3), np.uint8)
    sheet[:n] = colour
    rows = sheet.reshape(down, ACROSS, h, w, 3).swapaxes(1, 2).reshape(down * h, ACROSS * w, 3)
    return go.Image(
        z=rows, x0=-0.5 + 0.5 / w, y0=-0.5 + 0.5 / h, dx=1 / w, dy=1 / h, hoverinfo="skip"
    )
