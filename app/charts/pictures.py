"""Pictures: from the record of a finished run to each chart's arguments.

`run` is a `core.runs.Record`, or anything that reads alike.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

import numpy as np

from app.charts import (
    MODELS,
    Chart,
    angle_matrix,
    arrows3d,
    class_change,
    depth,
    dumbbell,
    flow,
    heat,
    maps,
    membership,
    strength,
)
from app.charts import angles as angles_chart
from app.charts import confidence as confidence_chart
from app.charts.theme import Theme

Array = np.ndarray
Arrays = Mapping[str, Array]


class Run(Protocol):
    """What is read of a finished run."""

    @property
    def report(self) -> Mapping[str, Any]: ...

    def arrays(self, name: str) -> Arrays: ...


def by_model(arrays: Arrays, form: str) -> dict[str, Array]:
    """The arrays whose names are `form` with a model's name for `{}`."""
    return {m: arrays[form.format(m)] for m in MODELS if form.format(m) in arrays}


def answers(logits: Array) -> Array:
    """The class with the largest logit (n); -1 for a tie, as the engine counts it."""
    if not len(logits):
        return np.zeros(0, int)
    top = logits.max(1, keepdims=True)
    tied = (logits >= top - 1e-6).sum(1) > 1
    return np.where(tied, -1, logits.argmax(1))


def looked_at(arrays: Arrays) -> str:
    """The set on which people look at what was to be forgotten: test images where there are any."""
    return "test_forget" if len(arrays["y/test_forget"]) else "forget"


def gone(run: Run) -> list[int]:
    """Labels that were to be forgotten; empty for single images."""
    return list(run.report["target"]["forget_classes"])


def readings(run: Run, theme: Theme, names: Iterable[str] = ()) -> dumbbell.Strip:
    """The strip of readings; all of them, or those of `names` in that order."""
    found = {r["name"]: r for r in run.report["readings"]}
    chosen = [found[name] for name in names if name in found] or list(found.values())
    return dumbbell.draw(chosen, theme)


def points(run: Run) -> maps.Points:
    """The images on the maps."""
    arrays = run.arrays("figures")
    rows = (arrays["map/ids"], arrays["map/y"], arrays["map/forget"])
    said, sure = by_model(arrays, "map/pred/{}"), by_model(arrays, "map/prob/{}")
    return maps.Points(*rows, said, run.report["classes"], sure)


def map_charts(run: Run, theme: Theme, method: str = "pca", **options: Any) -> maps.Maps:
    """The three maps by `method` (pca, tsne, umap); `options` are those of `maps.draw`."""
    target = run.report["target"]
    title = "of the forget set" if target["level"] == "instance" else target["title"]
    layout = run.arrays(f"layout_{method}")
    return maps.draw(layout, points(run), theme, target=title, **options)


def angle_matrices(run: Run, share: float | None = None) -> dict[str, dict[str, Array]]:
    """Angles (C C, degrees) by kind and model; the unlearned ones at strength `share` if given."""
    arrays = run.arrays("figures")
    found = {kind: by_model(arrays, f"angles/{kind}/{{}}") for kind in angles_chart.KINDS}
    if share is not None and "strength/values" in arrays:
        near = int(np.abs(arrays["strength/values"] - share).argmin())
        found["means"]["unlearned"] = arrays["strength/mean_angles"][near]
        found["head"]["unlearned"] = arrays["strength/head_angles"][near]
    return found


def angles(run: Run, theme: Theme, share: float | None = None) -> Chart:
    """Histograms of the angles."""
    found = angle_matrices(run, share)
    return angles_chart.histogram(found, run.report["classes"], theme, forget=gone(run))


def matrix(run: Run, theme: Theme, kind: str = "means", share: float | None = None) -> Chart:
    """The angle matrices of one kind (`means` or `head`)."""
    found = angle_matrices(run, share)[kind]
    return angle_matrix.draw(found, run.report["classes"], theme, forget=gone(run), kind=kind)


def arrows(run: Run, theme: Theme, share: float | None = None, heads: bool = True) -> Chart:
    """Class means, and with `heads` the head's rows, in three dimensions."""
    arrays = run.arrays("figures")
    means = by_model(arrays, "geometry/means3/{}")
    if share is not None and "strength/values" in arrays:
        means["unlearned"] = blended(arrays, share)
    rows = by_model(arrays, "geometry/head3/{}") if heads else {}
    return arrows3d.draw(means, rows, run.report["classes"], theme, forget=gone(run))


def blended(arrays: Arrays, share: float) -> Array:
    """The unlearned model's class means (C 3) where its projection had strength `share`.

    A projection is linear, so means lie on the line between both models'; the stored ones are
    each scaled to mean length 1, which is undone and done again.
    """
    raw = [centred(arrays[f"geometry/means/{m}"]) for m in ("original", "unlearned")]
    flat = [arrays[f"geometry/means3/{m}"] * length(r) for m, r in zip(MODELS, raw, strict=False)]
    weights = (1 - share, share)
    whole = weights[0] * raw[0] + weights[1] * raw[1]
    return (weights[0] * flat[0] + weights[1] * flat[1]) / max(length(whole), 1e-12)


def centred(rows: Array) -> Array:
    """Rows (C d) without their mean; absent classes lie at the centre."""
    rows = np.asarray(rows, float)
    return np.nan_to_num(rows - rows[np.isfinite(rows).all(1)].mean(0))


def length(rows: Any) -> float:
    """Mean length of the rows that are not at the centre."""
    norms = np.linalg.norm(rows, axis=1)
    return float(norms[norms > 0].mean()) if (norms > 0).any() else 0.0


def along_strength(run: Run, theme: Theme, chosen: float = 1.0) -> Chart | None:
    """What the strength of the projection changes; None where the method is no projection."""
    arrays = run.arrays("figures")
    if "strength/values" not in arrays:
        return None
    names = ("values", "mean_angles", "head_angles", "forget_accuracy", "retain_accuracy")
    sweep = strength.Sweep(*(arrays[f"strength/{name}"] for name in names))
    return strength.draw(sweep, chosen, theme, forget=gone(run))


def along_depth(run: Run, theme: Theme, names: Iterable[str] = ()) -> Chart:
    """The readings along the taps; all of them, or those of `names` in that order."""
    entries, wanted = run.report["depth"], list(names)
    chosen = [e for name in wanted for e in entries if e["name"] == name] or entries
    title = run.report["target"]["title"]
    return depth.draw(chosen, run.report["taps"], theme, target=title)


def where_to(run: Run, theme: Theme, images: str = "") -> Chart:
    """Where the images of a set (test images if left out) go."""
    arrays = run.arrays("figures")
    images = images or looked_at(arrays)
    said = {m: answers(z) for m, z in by_model(arrays, f"logits/{{}}/{images}").items()}
    classes = run.report["classes"]
    return flow.draw(arrays[f"y/{images}"], said, classes, theme)


def confidence(run: Run, theme: Theme, images: str = "") -> Chart:
    """Confidence and entropy on the images of a set (test images if left out)."""
    arrays = run.arrays("figures")
    logits = by_model(arrays, f"logits/{{}}/{images or looked_at(arrays)}")
    probabilities = {m: confidence_chart.probabilities(z) for m, z in logits.items()}
    return confidence_chart.draw(probabilities, theme)


def by_class(run: Run, theme: Theme) -> Chart:
    """Change of accuracy by class, on all test images."""
    arrays, parts = run.arrays("figures"), ("test_forget", "test_retain")
    y = np.concatenate([arrays[f"y/{part}"] for part in parts])
    logits = [by_model(arrays, f"logits/{{}}/{part}") for part in parts]
    said = {m: answers(np.concatenate([part[m] for part in logits])) for m in logits[0]}
    return class_change.draw(y, said, run.report["classes"], theme, forget=gone(run))


def attack_scores(run: Run) -> dict[str, tuple[Array, Array]]:
    """Scores by model of images to be forgotten that were trained on, and of unseen ones.

    Unseen images of the same classes where there are any; otherwise retained test images.
    """
    arrays = run.arrays("figures")
    unseen = "test_forget" if len(arrays["y/test_forget"]) else "test_retain"
    members, others = (by_model(arrays, f"logits/{{}}/{part}") for part in ("forget", unseen))

    def scored(logits: Array, part: str) -> Array:
        return membership.scores(logits, arrays[f"y/{part}"])

    return {m: (scored(members[m], "forget"), scored(others[m], unseen)) for m in members}


def attack(run: Run, theme: Theme, threshold: float | None = None) -> Chart:
    """The membership attack; by default at the threshold that is best on the original."""
    found = attack_scores(run)
    if threshold is None:
        threshold = membership.best_threshold(*found["original"]) if found else 0.0
    return membership.draw(found, threshold, theme)


def attention(
    run: Run, image: Callable[[int], Array], target: str = "true", size: int = heat.SIZE
) -> list[tuple[int, dict[str, heat.Overlay]]]:
    """Ids with their overlays by model; `target` is `true` or `predicted`."""
    arrays = run.arrays("attention")
    cams = by_model(arrays, f"cam/{target}/{{}}")
    return [
        (sample, heat.row(image(sample), {m: cams[m][i] for m in cams}, size=size))
        for i, sample in enumerate(arrays["ids"].tolist())
    ]
