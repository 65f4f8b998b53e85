"""Readings of instance targets: misnaming, its balance with retention, and lost structure."""

import dataclasses
import math

import numpy as np
import pytest
import seen
import torch
from seen import read, rng

from core.audit import audit
from core.metrics import METRICS
from core.metrics.base import Unavailable

NAMES = ("misclassification", "balance", "structural_collapse")
ORIGINAL, UNLEARNED, GOLD = (seen.outputs(m, instances=40) for m in range(3))


def features(model, change):
    changed = {n: {t: change(z) for t, z in f.items()} for n, f in model.features.items()}
    return dataclasses.replace(model, features=changed)


def naming(model, kept: float, lost: float):
    """Right on this share of the retain set, wrong on that share of the forget set."""
    logits = dict(model.logits)
    for name, share in (("retain", kept), ("forget", 1 - lost)):
        y = model.y[name]
        side = torch.where(torch.arange(len(y)) < round(share * len(y)), 1.0, -1.0)
        logits[name] = side[:, None] * torch.nn.functional.one_hot(y, 4)
    return dataclasses.replace(model, logits=logits)


def test_they_are_read_for_instance_targets_only():
    assert all(METRICS[name].levels == {"instance"} for name in NAMES)
    report = audit(ORIGINAL, UNLEARNED, [GOLD], level="instance")
    rows = {r["name"]: r for r in report["readings"]}
    assert all(rows[name]["unavailable"] is None for name in NAMES)
    assert rows["relearn_steps"]["unavailable"] == "because it has no meaning for instance targets"


def test_misclassification_is_what_forget_accuracy_leaves():
    left = read("forget_accuracy_train", UNLEARNED).value
    assert read("misclassification", UNLEARNED).value == pytest.approx(1 - left, abs=1e-12)


@pytest.mark.parametrize(("kept", "lost"), [(0.75, 0.5), (0.5, 1.0), (1.0, 1.0), (1.0, 0.0)])
def test_balance_is_the_harmonic_mean(kept, lost):
    expected = 2 * kept * lost / (kept + lost)
    assert read("balance", naming(ORIGINAL, kept, lost)).value == pytest.approx(expected, abs=1e-12)


def test_balance_of_a_model_that_keeps_and_loses_nothing_is_nought():
    assert read("balance", naming(ORIGINAL, 0.0, 0.0)).value == 0


def test_the_interval_of_balance_is_the_bootstraps():
    got = read("balance", naming(ORIGINAL, 0.8, 0.6))
    draw = np.random.default_rng(0)
    sizes = {n: len(ORIGINAL.y[n]) for n in ("retain", "forget")}
    a = draw.binomial(sizes["retain"], 0.8, 4000) / sizes["retain"]
    b = draw.binomial(sizes["forget"], 0.6, 4000) / sizes["forget"]
    expected = np.percentile(2 * a * b / (a + b), [2.5, 97.5])
    assert [got.low, got.high] == pytest.approx(expected, abs=0.03)


def test_structural_collapse_image_by_image():
    def cosine(a, b):
        return float(np.dot(a, b)) / math.hypot(*a) / math.hypot(*b)

    shown = [m.at("penultimate", "test_retain").numpy() for m in (UNLEARNED, ORIGINAL)]
    heads, lost = ORIGINAL.head.numpy(), []
    for now, before in zip(*shown, strict=True):
        structures = [[cosine(z, head) for head in heads] for z in (now, before)]
        lost.append(1 - cosine(*structures))
    got = read("structural_collapse", UNLEARNED, ORIGINAL).value
    assert got == pytest.approx(sum(lost) / len(lost), abs=1e-6)  # float32 features


def test_structure_is_a_matter_of_directions():
    longer = features(ORIGINAL, lambda z: 7 * z)
    assert read("structural_collapse", longer, ORIGINAL).value == pytest.approx(0, abs=1e-6)
    opposite = features(ORIGINAL, lambda z: -z)
    assert read("structural_collapse", opposite, ORIGINAL).value == pytest.approx(2, abs=1e-6)
    turn = torch.linalg.qr(torch.randn(8, 8, generator=rng()))[0]
    turned = features(ORIGINAL, lambda z: z @ turn if z.shape[1] == 8 else z)
    assert read("structural_collapse", turned, ORIGINAL).value > 0.1


def test_anchors_are_the_originals_not_the_models():
    other = dataclasses.replace(UNLEARNED, head=UNLEARNED.head.flip(0) + 1)
    values = [read("structural_collapse", m, ORIGINAL).value for m in (UNLEARNED, other)]
    assert values[0] == values[1]


def test_structure_needs_features_that_have_a_direction_and_the_originals_width():
    with pytest.raises(Unavailable, match="no direction"):
        read("structural_collapse", features(UNLEARNED, torch.zeros_like), ORIGINAL)
    with pytest.raises(Unavailable, match="one width"):
        read("structural_collapse", features(UNLEARNED, lambda z: z[:, :5]), ORIGINAL)
