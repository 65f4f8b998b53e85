"""Map: the same images in the three models, in one coordinate system."""

from dataclasses import dataclass, field
from html import escape
from typing import Any

import streamlit as st

from app import jobs_view
from app.address import Ask
from app.charts import LegendItem, pictures, present
from app.charts import maps as chart
from app.charts.selection import selected_ids
from app.charts.snippet import snippet
from app.charts.text import named
from app.charts.theme import NAMES
from app.panel import figure, key, more, note, tab, theme
from app.pictures import label, thumbnail
from core.records import Record

METHODS = {"tsne": "t-SNE", "umap": "UMAP", "pca": "PCA"}
COLOURS = {"label": "Label", "prediction": "Prediction", "state": "Forgetting"}
MOST = 24
"""Most images shown for a selection."""


@tab
def draw(record: Record, ask: Ask) -> None:
    """Controls, three maps, one legend, and the images that were picked."""
    with st.container(horizontal=True, vertical_alignment="bottom", key=key("map-controls")):
        method = choice("Layout", METHODS, "map")
        colour = choice("Colour", COLOURS, "colour")
        share = st.slider(
            "Move from original to unlearned", 0.0, 1.0, 1.0, 0.05, key=key("share"),
            help="Where the middle map's points stand between the original's places (0) and the"
            " unlearned model's (1).", width=260,
        )  # fmt: skip
    ready = arranged(record, ask, method)
    if ready is None:
        return
    lit = Lit.of(record.key)
    sets: dict[tuple[int, ...], chart.Maps] = {}
    drawn: dict[str, chart.Maps] = {}
    for model in record.report["taps"]:
        chosen = tuple(lit.shown.get(model, ()))
        if chosen not in sets:  # mostly the same for all: drawn once
            sets[chosen] = pictures.map_charts(
                record, theme(), ready, colour=colour, selected=chosen, share=share
            )
        drawn[model] = sets[chosen]
    changed = False
    for column, (model, group) in zip(
        st.columns(len(drawn), border=True, gap="small"), drawn.items(), strict=True
    ):
        with column:
            header(model, group.charts[model].title, record, ready, group.charts[model])
            event = figure(group.charts[model], f"map-{model}", select=("lasso", "box", "points"))
            changed |= lit.take(model, selected_ids(event), list(drawn))
    if changed:
        st.rerun(scope="fragment")
    st.html(legend(next(iter(drawn.values())).legend, METHODS[ready]))
    note(
        "Lasso or click points in any map to see their images in all three. Distances between far"
        " groups and the sizes of groups carry no meaning in such a picture; the probes above do."
    )
    selection(record, ask, lit.ids)


def choice(title: str, options: dict[str, str], name: str) -> Any:
    """A segmented control whose state is in the address."""
    found = st.segmented_control(
        title, list(options), default=next(iter(options)), format_func=options.__getitem__,
        key=key(name), required=True, bind="query-params",
    )  # fmt: skip
    return found or next(iter(options))


def arranged(record: Record, ask: Ask, method: str) -> str | None:
    """The layout to draw now: `method` if it is there, else PCA while it is being made."""
    if record.has(f"layout_{method}"):
        return method
    queue = jobs_view.jobs()
    job = f"{record.key}-{method}"
    status = jobs_view.ended(job)
    if status is None:
        queue.layout(ask.recipe, method)
        note(f"{METHODS[method]} is being arranged; this is PCA meanwhile.")
        jobs_view.follow(job, key(method))
    else:
        st.warning(f"{METHODS[method]} is not available: {status.reason or 'it was cancelled.'}")
        if st.button("Try again", key=key(f"again-{method}")):
            queue.layout(ask.recipe, method)
            st.rerun(scope="fragment")
    return "pca" if record.has("layout_pca") else None


def header(model: str, title: str, record: Record, method: str, one: Any) -> None:
    """A map's name, what it shows, and its exports."""
    colours = theme()
    with st.container(horizontal=True, vertical_alignment="center", gap="small", wrap=False):
        st.html(
            f'<div class="fs-maphead"><b style="color:{colours.text(model)}">{NAMES[model]}</b>'
            f'<span class="fs-small" style="color:{colours.muted}">{escape(title)}</span></div>',
            width="stretch",
        )
        code = snippet("map", record.key, theme=colours.name, method=method)
        more(one, f"map-{model}", code)


@dataclass
class Lit:
    """What is picked in one run's maps.

    A map in which people drag shows their selection by itself; to redraw it would drop that
    selection. So a selection changes the figures of the other maps only.
    """

    run: str
    ids: list[int] = field(default_factory=list)
    source: str = ""
    shown: dict[str, list[int]] = field(default_factory=dict)
    """What each map's figure was last drawn with."""
    before: dict[str, list[int]] = field(default_factory=dict)

    @classmethod
    def of(cls, run: str) -> "Lit":
        """The one of this run and visitor; another run begins with nothing picked."""
        place = key("lit")
        found = st.session_state.get(place)
        if found is None or found.run != run:
            found = st.session_state[place] = cls(run)
        return found

    def take(self, model: str, ids: list[int], models: list[str]) -> bool:
        """Note what is selected in the map of `model`; whether the others must be drawn anew."""
        if self.before.get(model, []) == ids:
            return False
        self.before[model] = ids
        if not ids and model != self.source:
            return False  # an older selection that was dropped, not one that was cleared
        self.ids, self.source = ids, model
        self.shown |= {other: ids for other in models if other != model}
        return True


def legend(items: list[LegendItem], method: str) -> str:
    """One legend for the three maps, as HTML."""
    colours = theme()
    marks = []
    for item in items:
        ring = f"outline:2px solid {colours.forget};outline-offset:1px;" if item.ringed else ""
        name = f"<b>{escape(item.name)}</b>" if item.ringed else escape(item.name)
        marks.append(f'<span><i style="background:{item.colour};{ring}"></i>{name}</span>')
    return (
        f'<div class="fs-legend" style="color:{colours.ink}"><span><b>{method} of all models'
        f" together</b></span>{''.join(marks)}</div>"
    )


def selection(record: Record, ask: Ask, ids: list[int]) -> None:
    """The picked images with what the three models say of them."""
    if not ids:
        return
    points = pictures.points(record)
    row = {int(sample): i for i, sample in enumerate(points.ids.tolist())}
    st.markdown(f"**{len(ids)} images picked**" + (f", the first {MOST} shown" * (len(ids) > MOST)))
    cells = "".join(said(points, row[i], i, ask) for i in ids[:MOST] if i in row)
    st.html(f'<div class="fs-thumbs" style="gap:12px">{cells}</div>')


def said(points: chart.Points, row: int, sample: int, ask: Ask) -> str:
    """One image with its label and the three answers, as HTML."""
    colours = theme()
    lines = []
    for model in present(points.pred):
        answer = named(points.classes, int(points.pred[model][row]))
        sure = points.prob[model][row].max() if points.prob else float("nan")
        lines.append(
            f'<span style="color:{colours.text(model)}">{escape(answer)} {100 * sure:.0f} %</span>'
        )
    image = thumbnail(ask.dataset, sample, 72)
    true = f"<b>{escape(label(ask.dataset, sample))}</b> · {sample}"
    return (
        f'<div class="fs-small" style="width:118px;line-height:1.3">{image}{true}<br>'
        f"{'<br>'.join(lines)}</div>"
    )
