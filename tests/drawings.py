"""Drawings: a run of 60 map points, one class with a hostile name, and every picture of it."""

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from app.charts import MODELS, pictures, theme

HOSTILE = "<img src=x onerror=alert(1)>"
CLASSES = ("bag", HOSTILE, "a & b", "=cmd()", "boot")
FORGET = 1
THEMES = list(theme.THEMES.values())


@dataclass
class Run:
    """A run of 60 map points and five classes, one of them with a hostile name."""

    report: dict
    files: dict

    def arrays(self, name):
        return self.files[name]


def made(models=MODELS, seed=0) -> Run:
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(5), 12)
    arrays = {"map/ids": 900 - 7 * np.arange(60), "map/y": y, "map/forget": y == FORGET}
    arrays |= {"y/forget": np.full(20, FORGET), "y/test_forget": np.full(10, FORGET)}
    arrays |= {"y/test_retain": np.repeat([0, 2, 3, 4], 10)}
    for who in models:
        prob = rng.dirichlet(np.ones(5), 60)
        arrays |= {f"map/prob/{who}": prob, f"map/pred/{who}": prob.argmax(1)}
        for kind in ("means", "head"):
            rows = rng.normal(size=(5, 8))
            unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
            arrays[f"angles/{kind}/{who}"] = np.degrees(np.arccos(np.clip(unit @ unit.T, -1, 1)))
            arrays |= {f"geometry/{kind}/{who}": rows, f"geometry/{kind}3/{who}": rows[:, :3]}
        for part in ("forget", "test_forget", "test_retain"):
            arrays[f"logits/{who}/{part}"] = rng.normal(size=(len(arrays[f"y/{part}"]), 5))
    arrays |= {f"strength/{k}_angles": np.full((3, 5, 5), 104.0) for k in ("mean", "head")}
    arrays |= {f"strength/{k}_accuracy": np.array([1.0, 0.5, 0.0]) for k in ("forget", "retain")}
    arrays["strength/values"] = np.array([0, 0.5, 1])
    cams = {f"cam/true/{m}": rng.random((3, 4, 4)) for m in models}
    files = {"figures": arrays, "attention": {"ids": np.array([900, 893, 886]), **cams}}
    files["layout_pca"] = {m: rng.normal(size=(60, 2)) * (1 + i) for i, m in enumerate(models)}
    return Run(report("gold" in models), files)


def reading(name: str, gold: bool, **more) -> dict:
    row = {"name": name, "title": f"Reading {HOSTILE}", "help": "", "unit": "fraction", "n": 50}
    row |= {"low": 0.0, "high": 1.0, "original": 0.9, "unlearned": 0.8, "interval": [0.78, 0.82]}
    row |= {"original_interval": [0.88, 0.92], "unavailable": None, "golds": []}
    row |= {"gold": None, "gold_range": None, "gap": None}
    if gold:
        row |= {"gold": 0.6, "gold_range": [0.59, 0.61], "golds": [0.59, 0.61], "gap": 0.2}
    return row | more


def report(gold: bool) -> dict:
    taps = ["stem", "penultimate"]
    depth = [reading("probe_linear", gold, tap=t) for t in [*taps, "transform"]]
    missing = dict.fromkeys(("original", "unlearned", "gold", "interval", "gold_range", "gap"))
    none = reading("rmia", gold, unavailable=f"because {HOSTILE}") | missing
    return {
        "target": {"title": HOSTILE, "level": "class", "forget_classes": [FORGET]},
        "classes": list(CLASSES),
        "taps": {"original": taps, "unlearned": [*taps, "transform"], "gold": taps},
        "readings": [reading("a", gold), none],
        "depth": depth,
        "recipe": {"dataset": "blobs"},
    }


def drawn(run: Run, colours: theme.Theme) -> dict:
    found = {
        "angles": pictures.angles(run, colours),
        "angle_matrix": pictures.matrix(run, colours),
        "arrows": pictures.arrows(run, colours, share=0.5),
        "strength": pictures.along_strength(run, colours, 0.25),
        "depth": pictures.along_depth(run, colours),
        "flow": pictures.where_to(run, colours),
        "confidence": pictures.confidence(run, colours),
        "class_change": pictures.by_class(run, colours),
        "membership": pictures.attack(run, colours),
    }
    shown = pictures.map_charts(run, colours).charts
    return found | {f"map of {model}": chart for model, chart in shown.items()}


@cache
def usual(colours: theme.Theme) -> dict:
    """Drawing is most of these tests' time; nobody changes what is drawn here."""
    return drawn(made(), colours)


def traces(chart) -> list[Any]:
    return list(chart.figure.data)


def layout_of(chart) -> Any:
    return chart.figure.layout
