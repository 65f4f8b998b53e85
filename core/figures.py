"""Figures: the arrays behind every picture of a run, made once, drawn by whoever asks."""

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from core.geometry.collapse import all_means, angles_from_centre
from core.metrics.outputs import Outputs, predicted
from core.models.projection import Projection

Arrays = dict[str, np.ndarray]

POINTS = 2000
"""Most rows on a map."""
STRENGTHS = torch.linspace(0, 1, 21)
CORE_SETS = ("forget", "retain", "test_forget", "test_retain")


def figures(models: Mapping[str, Outputs], basis: Tensor | None = None, *, seed: int = 0) -> Arrays:
    """Arrays by name for `models` (original, unlearned and, where there is one, gold).

    `basis` (k d) are the orthonormal directions that a projection takes out of the unlearned
    model's features; with it comes what its strength would change.
    """
    first = models["original"]
    arrays: Arrays = {}
    for name in CORE_SETS:
        arrays[f"y/{name}"] = first.y[name].numpy()
        arrays[f"ids/{name}"] = first.ids[name].numpy()
        for who, outputs in models.items():
            arrays[f"logits/{who}/{name}"] = outputs.logits[name].numpy()
    arrays |= map_rows(models, seed) | geometry(models)
    if basis is not None:
        arrays |= strengths(first, models["unlearned"], basis)
    return arrays


def chosen(outputs: Outputs, seed: int) -> Tensor:
    """Rows of (forget set to look at) + test_retain that go on the map, at most POINTS.

    A forgotten class is looked at on its test images; chosen images are training images.
    """
    shown = len(outputs.y[forget_set(outputs)])
    total = shown + len(outputs.y["test_retain"])
    rng = torch.Generator().manual_seed(seed)
    mine = torch.randperm(shown, generator=rng)[: POINTS // 4]
    rest = shown + torch.randperm(total - shown, generator=rng)[: POINTS - len(mine)]
    return torch.cat([mine.sort().values, rest.sort().values])


def forget_set(outputs: Outputs) -> str:
    """The set in which people look at what was to be forgotten."""
    return "test_forget" if len(outputs.y["test_forget"]) else "forget"


def map_features(models: Mapping[str, Outputs], seed: int = 0) -> dict[str, Tensor]:
    """Features (m d) that feed the head, on the map's rows, by model."""
    rows, sets = chosen(models["original"], seed), (forget_set(models["original"]), "test_retain")
    return {who: o.at(o.taps[-1], *sets)[rows] for who, o in models.items()}


def map_rows(models: Mapping[str, Outputs], seed: int) -> Arrays:
    """What hovering over and colouring a map's points needs."""
    first = models["original"]
    rows, sets = chosen(first, seed), (forget_set(first), "test_retain")
    arrays: Arrays = {
        "map/ids": torch.cat([first.ids[s] for s in sets])[rows].numpy(),
        "map/y": first.labels(*sets)[rows].numpy(),
        "map/forget": (rows < len(first.y[sets[0]])).numpy(),
    }
    for who, outputs in models.items():
        logits = torch.cat([outputs.logits[s] for s in sets])[rows]
        arrays[f"map/pred/{who}"] = predicted(logits).numpy()
        arrays[f"map/prob/{who}"] = logits.softmax(1).half().numpy()
    return arrays


def training_means(outputs: Outputs) -> Tensor:
    """Class means (k d, float32) of the training features that feed the head."""
    z, y = outputs.at(outputs.taps[-1], "forget", "retain"), outputs.labels("forget", "retain")
    return all_means(z, y, len(outputs.head)).to(z.dtype)


def geometry(models: Mapping[str, Outputs]) -> Arrays:
    """Class means, head rows and their angles, and both in each model's top three axes."""
    arrays: Arrays = {}
    for who, o in models.items():
        means = training_means(o)
        arrays |= {
            f"geometry/means/{who}": means.numpy(),
            f"geometry/head/{who}": o.head.numpy(),
            f"geometry/bias/{who}": o.bias.numpy(),
            f"angles/means/{who}": angles_from_centre(means).numpy(),
            f"angles/head/{who}": angles_from_centre(o.head).numpy(),
        }
    return arrays | axes(models, arrays)


def axes(models: Mapping[str, Outputs], arrays: Arrays) -> Arrays:
    """Centred means and head rows (k 3), in the original's top three axes of class means.

    Each is scaled to mean length 1, so that means and head rows share a picture. Gold, whose
    features have axes of their own, is first turned onto the original (orthogonal Procrustes).
    """
    means = {w: _unit(torch.from_numpy(arrays[f"geometry/means/{w}"]).double()) for w in models}
    heads = {w: _unit(torch.from_numpy(arrays[f"geometry/head/{w}"]).double()) for w in models}
    top = torch.linalg.svd(means["original"]).Vh[:3].T
    out: Arrays = {}
    for who in models:
        turn = torch.eye(len(top), dtype=torch.float64)
        if who == "gold":
            u, _, vh = torch.linalg.svd(means[who].T @ means["original"])
            turn = u @ vh
        out[f"geometry/means3/{who}"] = _three(means[who] @ turn @ top)
        out[f"geometry/head3/{who}"] = _three(heads[who] @ turn @ top)
    return out


def _unit(rows: Tensor) -> Tensor:
    """Centred and scaled to mean length 1; absent classes lie at the centre."""
    present = ~rows.isnan().any(1)
    rows = torch.where(present[:, None], rows - rows[present].mean(0), 0.0)
    return rows / rows[present].norm(dim=1).mean().clamp_min(1e-12)


def _three(points: Tensor) -> np.ndarray:
    """(k 3) float32, padded with zeros where there are fewer than three axes."""
    return torch.nn.functional.pad(points, (0, 3 - points.shape[1])).float().numpy()


def strengths(original: Outputs, unlearned: Outputs, basis: Tensor) -> Arrays:
    """What a projection changes as its strength goes from 0 to 1: angles and accuracies."""
    tap, means = original.taps[-1], training_means(original)
    masked = torch.isinf(unlearned.logits["test_retain"][:1]).squeeze(0)
    found: dict[str, list[np.ndarray]] = {}
    for s in STRENGTHS:
        cut, hidden = Projection(basis, float(s)), masked & (s > 0)
        sides = {"mean_angles": means, "head_angles": original.head}
        row = {name: angles_from_centre(cut(x)) for name, x in sides.items()}
        for name in ("forget", "retain"):
            logits = cut(original.features[f"test_{name}"][tap]) @ unlearned.head.T + unlearned.bias
            hits = predicted(logits.masked_fill(hidden, -torch.inf)) == original.y[f"test_{name}"]
            row[f"{name}_accuracy"] = hits.float().mean()
        for key, value in row.items():
            found.setdefault(f"strength/{key}", []).append(value.numpy())
    return {"strength/values": STRENGTHS.numpy()} | {k: np.stack(v) for k, v in found.items()}
