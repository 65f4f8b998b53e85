"""Forms: widgets from knobs, targets and data sets; what they say is the next address."""

from html import escape

import numpy as np
import streamlit as st

from app import picker
from app.address import GOLDS, KNOB, Ask, first_target, read
from app.panel import literal, theme
from app.pictures import thumbnails
from core.data import SOURCES, offered
from core.data.examples import Dataset
from core.data.targets import (
    ForgetClasses,
    ForgetIds,
    ForgetRandom,
    ForgetSubclass,
    ForgetTarget,
    Level,
    parse,
    subclasses,
)
from core.knobs import Knob, Value
from core.models import MODELS
from core.registry import describe
from core.unlearners import UNLEARNERS
from core.unlearners.base import Unlearner

KINDS = {
    "class": "Class",
    "classes": "Classes",
    "subclass": "Subclass",
    "random": "Random",
    "ids": "Images",
}
LEVELS: dict[str, Level] = {"class": "class", "classes": "class", "subclass": "subclass"}
"""Of the kinds of target; the others are single images."""
THUMB = 19
"""Pixels of a side of a thumbnail in the sidebar: ten of them fit in a row."""
ACCESS = {"forget": "forget set", "retain": "retain set", "head": "head"}


def sidebar(ask: Ask) -> tuple[Ask, bool]:
    """The form; what it asks for now, and whether Run was pressed."""
    with st.sidebar:
        words = question(ask)
        words |= how(LEVELS.get(st.session_state.form_kind, "instance"))
        wanted = read(words)
        for notice in wanted.notices:
            st.warning(literal(notice), icon=":material/info:")
        pressed = st.button("Run", type="primary", width="stretch", key="run")
    return wanted, pressed


def question(ask: Ask) -> dict[str, str]:
    """What and what to forget: the part of the form that pages share."""
    st.html('<div class="fs-brand">Forgetscope</div>')
    take_over(ask)
    words = what(ask)
    dataset = read(words).dataset if words["dataset"] != ask.dataset.name else ask.dataset
    return words | forget(dataset)


def take_over(ask: Ask) -> None:
    """Set the widgets to what the address says, once for each address."""
    if st.session_state.get("form_from") == ask.words():
        return
    st.session_state.form_from = ask.words()
    state = st.session_state
    state.form_dataset, state.form_model = ask.dataset.name, ask.model
    state.form_unlearner, state.form_seed, state.form_golds = ask.name, ask.seed, ask.golds
    for knob, value in ask.unlearner.settings().items():
        state[f"form_{ask.name}_{knob}"] = value
    target_to_widgets(ask.target)


def target_to_widgets(target: ForgetTarget) -> None:
    """Kind of target and its value, as the widgets hold them."""
    state = st.session_state
    state.form_kind = str(target).partition(":")[0]
    if isinstance(target, ForgetClasses):
        name = "form_class" if len(target.names) == 1 else "form_classes"
        state[name] = target.names[0] if len(target.names) == 1 else list(target.names)
    elif isinstance(target, ForgetSubclass):
        state.form_subclass = target.name
    elif isinstance(target, ForgetRandom):
        state.form_random = target.count
    elif isinstance(target, ForgetIds):
        state.form_ids = ", ".join(map(str, target.ids))


def head(text: str) -> None:
    """A small heading in the sidebar."""
    st.html(f'<div class="fs-head" style="color:{theme().muted}">{text}</div>')


def what(ask: Ask) -> dict[str, str]:
    """Data set and model."""
    head("WHAT")
    here, names = ask.dataset.name, offered()
    if here not in names:
        names.insert(0, here)
    chosen = st.selectbox(
        "Data set", names, key="form_dataset", format_func=source_label,
        label_visibility="collapsed",
    )  # fmt: skip
    if chosen == here:
        st.html(thumbnails(ask.dataset, one_each(ask.dataset), THUMB))
        size = f"{len(ask.dataset.train):,} + {len(ask.dataset.test):,} images"
        st.caption(f"{size}, {len(ask.dataset.classes)} classes")
    suits = ask.dataset.model if chosen == here else ""
    model = st.selectbox(
        "Model", list(MODELS), key="form_model", format_func=lambda n: describe(MODELS[n])[0],
        label_visibility="collapsed",
    )  # fmt: skip
    words = {"dataset": chosen}
    return words | ({"model": model} if suits and model != suits else {})


def source_label(name: str) -> str:
    """A data set as the list shows it."""
    source = SOURCES.get(name.partition(":")[0])
    extra = " (download)" if source is not None and source.download else ""
    return f"{name}{extra}"


def one_each(data: Dataset) -> list[int]:
    """Ids of the first test image of each class, at most ten."""
    labels = data.test.y.numpy()
    first = [int(np.flatnonzero(labels == c)[0]) for c in np.unique(labels)[:10]]
    return data.test.ids[first].tolist()


def forget(data: Dataset) -> dict[str, str]:
    """The target."""
    head("FORGET")
    kinds = [kind for kind in KINDS if kind != "subclass" or data.subclasses]
    if st.session_state.get("form_kind") not in kinds:
        st.session_state.form_kind = "class"
    # Five do not fit side by side, and pills look well in two rows.
    kind = (st.pills if len(kinds) > 4 else st.segmented_control)(
        "Kind of target", kinds, key="form_kind", format_func=KINDS.__getitem__,
        required=True, label_visibility="collapsed", width="stretch",
    )  # fmt: skip
    return {"forget": TEXTS[kind or "class"](data)}


def _class(data: Dataset) -> str:
    usual = getattr(first_target(data), "names", data.classes[:1])[0]
    if st.session_state.get("form_class") not in data.classes:
        st.session_state.form_class = usual
    name = st.selectbox(
        "Class to forget", data.classes, key="form_class", label_visibility="collapsed"
    )
    label = data.classes.index(name)
    rows = np.flatnonzero(data.train.y.numpy() == label)
    seen = int((data.test.y == label).sum())
    st.html(thumbnails(data, data.train.ids[rows[:9]].tolist(), THUMB))
    st.caption(f"{len(rows):,} training and {seen:,} test images")
    return f"class:{name}"


def _classes(data: Dataset) -> str:
    kept = [n for n in st.session_state.get("form_classes", []) if n in data.classes]
    st.session_state.form_classes = kept or list(data.classes[:2])
    names = st.multiselect(
        "Classes to forget", data.classes, key="form_classes", label_visibility="collapsed"
    )
    labels = tuple(sorted(data.classes.index(name) for name in names))
    return str(ForgetClasses(labels, tuple(data.classes[i] for i in labels)))


def _subclass(data: Dataset) -> str:
    names = subclasses(data)
    if st.session_state.get("form_subclass") not in names:
        st.session_state.form_subclass = names[0]
    name = st.selectbox(
        "Subclass to forget", names, key="form_subclass", label_visibility="collapsed"
    )
    target = parse(f"subclass:{name}", data)
    ids = data.train.ids[target.mask(data.train, True)]
    st.html(thumbnails(data, ids[:9].tolist(), THUMB))
    st.caption(f"{len(ids):,} training images of {target.title().partition(' within ')[2]}")
    return str(target)


def _random(data: Dataset) -> str:
    most = len(data.train) - 1
    st.session_state.form_random = min(int(st.session_state.get("form_random", 256)), most)
    count = st.number_input(
        "Number of training images, drawn at random", 1, most, key="form_random", step=32
    )
    return f"random:{count}"


def _ids(data: Dataset) -> str:
    first = int(data.train.ids[0])
    st.session_state.setdefault("form_ids", ", ".join(str(first + i) for i in range(8)))
    text = st.text_input(
        "Ids of training images", key="form_ids", max_chars=1500,
        help="Hover over a point of a map, or lasso some, to learn its id.",
    )  # fmt: skip
    if st.button("Choose by clicking", key="form_pick", width="stretch", on_click=picker.opened):
        picker.choose(data)
    ids = picker.ids_of(text)
    known = set(data.train.ids.tolist())
    st.html(thumbnails(data, [i for i in ids if i in known][:18], THUMB))
    return f"ids:{text.replace(' ', '')}"


TEXTS = {
    "class": _class, "classes": _classes, "subclass": _subclass, "random": _random, "ids": _ids,
}  # fmt: skip
"""Kind of target to the widgets that say which."""


def how(level: Level) -> dict[str, str]:
    """Unlearner and its knobs, seed and number of golds."""
    head("HOW")
    names = [n for n, kind in UNLEARNERS.items() if level in kind.levels]
    names.sort(key=lambda n: (UNLEARNERS[n].control, n))
    if st.session_state.get("form_unlearner") not in names:
        st.session_state.form_unlearner = names[0]
    name = st.selectbox(
        "Unlearner", names, key="form_unlearner", label_visibility="collapsed",
        format_func=lambda n: describe(UNLEARNERS[n])[0] + (" (control)" * UNLEARNERS[n].control),
    )  # fmt: skip
    kind = UNLEARNERS[name]
    about(kind)
    words = {"unlearner": name}
    with st.expander("Settings", key="form_settings"):
        for knob in kind.knobs():
            words[KNOB + knob.name] = str(field(name, knob))
        st.session_state.setdefault("form_seed", 0)
        st.session_state.setdefault("form_golds", GOLDS)
        seed = st.number_input("Seed", 0, 9999, key="form_seed", step=1)
        golds = st.number_input(
            "Gold models", 0, 5, key="form_golds", step=1,
            help="Models retrained without the forget set, to compare with. Their spread is the"
            " tolerance of the verdict; those that are not shipped are trained first.",
        )  # fmt: skip
    return words | {"seed": str(seed), "golds": str(golds)}


def about(kind: type[Unlearner]) -> None:
    """The method's idea, where it comes from, and what it may read."""
    _, idea = describe(kind)
    cite = kind.cite
    st.html(f'<div class="fs-small">{escape(idea)}</div>')
    if cite is not None:
        link = f"https://{escape(cite.link, quote=True)}"
        st.html(
            f'<div class="fs-small" style="color:{theme().muted}">{escape(cite.authors)}'
            f' ({cite.year}), <a href="{link}" target="_blank">{escape(cite.title)}</a></div>'
        )
    if kind.caveat:
        st.html(f'<div class="fs-small fs-caveat">{escape(kind.caveat)}</div>')
    badges = [(f"reads {ACCESS[a]}", True) for a in ACCESS if a in kind.needs]
    badges += [(f"no {ACCESS[a]}", False) for a in ("forget", "retain") if a not in kind.needs]
    st.html('<div class="fs-badges">' + "".join(badge(*b) for b in badges) + "</div>")


def badge(text: str, strong: bool) -> str:
    """A small label as HTML."""
    colour = theme().ink if strong else theme().muted
    edge = theme().muted if strong else theme().grid
    return f'<span class="fs-badge" style="color:{colour};border-color:{edge}">{text}</span>'


def field(method: str, knob: Knob) -> Value:
    """The widget of one knob."""
    key = f"form_{method}_{knob.name}"
    st.session_state.setdefault(key, knob.default)
    label = knob.name.replace("_", " ").capitalize() + (f" ({knob.unit})" if knob.unit else "")
    if knob.choices:
        return st.selectbox(label, knob.choices, key=key, help=knob.help)
    if knob.kind is bool:
        return st.toggle(label, key=key, help=knob.help)
    if knob.kind is int:
        low, high = int(knob.low or 0), int(knob.high or 10**6)
        return st.number_input(label, low, high, key=key, help=knob.help, step=1)
    if knob.kind is float and not knob.log and knob.high is not None and knob.high <= 1:
        low = float(knob.low or 0.0)
        return st.slider(label, low, float(knob.high), key=key, help=knob.help, step=0.01)
    if knob.kind is float:
        bounds = (float(knob.low or 0.0), float(knob.high or 1e6))
        return st.number_input(label, *bounds, key=key, help=knob.help, format="%.5g", step=None)
    return st.text_input(label, key=key, help=knob.help, max_chars=200)
