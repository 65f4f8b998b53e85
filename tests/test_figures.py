"""Figures: the arrays behind the pictures hold the right rows of the right model."""

import dataclasses

import numpy as np
import pytest
import seen
import torch
from torch import Tensor

from core import figures
from core.metrics.outputs import Outputs, predicted

MODELS = {who: seen.outputs(net) for net, who in enumerate(("original", "unlearned", "gold"))}
BASIS = torch.nn.functional.normalize(MODELS["original"].head[:1], dim=1)
ARRAYS = figures.figures(MODELS, BASIS)


def degrees(rows: np.ndarray) -> np.ndarray:
    """Angles between the rows, seen from their mean, by the textbook."""
    x = rows.astype(float) - rows.astype(float).mean(0)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    return np.degrees(np.arccos((x @ x.T).clip(-1, 1)))


def means(outputs: Outputs) -> np.ndarray:
    """Class means over all training images, in float32 as they are kept."""
    z = torch.cat([outputs.features[name]["penultimate"] for name in ("forget", "retain")]).numpy()
    y = torch.cat([outputs.y["forget"], outputs.y["retain"]]).numpy()
    return np.stack([z[y == c].mean(0) for c in range(4)])


def turned(outputs: Outputs, by: Tensor) -> Outputs:
    """The same model in other axes."""
    features = {n: {**f, "penultimate": f["penultimate"] @ by} for n, f in outputs.features.items()}
    return dataclasses.replace(outputs, features=features, head=outputs.head @ by)


def test_every_set_has_labels_ids_and_each_models_own_logits():
    for name in seen.SETS:
        assert (ARRAYS[f"y/{name}"] == MODELS["original"].y[name].numpy()).all()
        assert (ARRAYS[f"ids/{name}"] == MODELS["original"].ids[name].numpy()).all()
        for who, outputs in MODELS.items():
            assert (ARRAYS[f"logits/{who}/{name}"] == outputs.logits[name].numpy()).all(), who


# The map


@pytest.mark.parametrize("points", [2000, 24])
def test_each_row_of_the_map_is_one_test_image_for_all_models(points, monkeypatch):
    monkeypatch.setattr(figures, "POINTS", points)
    arrays, placed = figures.map_rows(MODELS, 0), figures.map_features(MODELS, 0)
    ids, forget = arrays["map/ids"], arrays["map/forget"]
    assert len(ids) == len(set(ids.tolist())) == min(points, 80)
    assert (arrays["map/y"][forget] == 0).all()
    assert (arrays["map/y"][~forget] > 0).all()
    for who, outputs in MODELS.items():
        where = {int(i): (n, r) for n in outputs.ids for r, i in enumerate(outputs.ids[n])}
        rows = [where[i] for i in ids.tolist()]
        assert {n for n, _ in rows} == {"test_forget", "test_retain"}
        logits = torch.stack([outputs.logits[n][r] for n, r in rows])
        features = torch.stack([outputs.features[n]["penultimate"][r] for n, r in rows])
        assert (arrays[f"map/pred/{who}"] == predicted(logits).numpy()).all(), who
        assert (arrays[f"map/prob/{who}"] == logits.softmax(1).half().numpy()).all(), who
        assert torch.equal(placed[who], features), who


def test_what_was_to_be_forgotten_has_a_quarter_of_a_full_map(monkeypatch):
    monkeypatch.setattr(figures, "POINTS", 24)
    forget = figures.map_rows(MODELS, 0)["map/forget"]
    assert forget.tolist() == [True] * 6 + [False] * 18


def test_chosen_images_are_shown_where_there_is_nothing_unseen_of_them():
    original = seen.outputs(0, instances=12)
    arrays = figures.map_rows({"original": original}, 0)
    gone = arrays["map/ids"][arrays["map/forget"]]
    assert sorted(gone.tolist()) == sorted(original.ids["forget"].tolist())


def test_a_transform_is_seen_on_the_map():
    unlearned = seen.outputs(0, transform=True)
    placed = figures.map_features({"original": MODELS["original"], "unlearned": unlearned})
    assert not torch.allclose(placed["original"], placed["unlearned"], atol=0.1)


# Geometry


@pytest.mark.parametrize("who", MODELS)
def test_class_means_head_and_angles_are_each_models_own(who):
    heads = {m: o.head + torch.randn(4, 8, generator=seen.rng(9)) for m, o in MODELS.items()}
    models = {m: dataclasses.replace(o, head=heads[m]) for m, o in MODELS.items()}
    found, outputs = figures.geometry(models), models[who]
    np.testing.assert_allclose(found[f"geometry/means/{who}"], means(outputs), atol=1e-5)
    assert (found[f"geometry/head/{who}"] == outputs.head.numpy()).all()
    assert (found[f"geometry/bias/{who}"] == outputs.bias.numpy()).all()
    # arccos loses half the digits near 0 degrees
    for kind, rows in (("means", means(outputs)), ("head", outputs.head.numpy())):
        np.testing.assert_allclose(found[f"angles/{kind}/{who}"], degrees(rows), atol=1e-3)


def test_angles_are_seen_from_the_centre():
    moved = dataclasses.replace(MODELS["original"], head=MODELS["original"].head + 7)
    found = figures.geometry({"original": moved})["angles/head/original"]
    np.testing.assert_allclose(found, ARRAYS["angles/head/original"], atol=1e-3)  # float32 rows


def test_an_absent_class_has_no_mean_and_no_angle_and_leaves_the_others_alone():
    def without(name: str, array: Tensor) -> Tensor:
        return array[MODELS["original"].y[name] != 2]

    original = MODELS["original"]
    some = dataclasses.replace(
        original,
        features={
            n: {t: without(n, z) for t, z in f.items()} for n, f in original.features.items()
        },
        y={n: without(n, y) for n, y in original.y.items()},
    )
    found, rest = figures.geometry({"original": some}), [0, 1, 3]
    assert np.isnan(found["geometry/means/original"][2]).all()
    angles = found["angles/means/original"]
    assert np.isnan(angles[2]).all()
    assert np.isnan(angles[:, 2]).all()
    expected = degrees(means(original)[rest])
    np.testing.assert_allclose(angles[np.ix_(rest, rest)], expected, atol=1e-3)
    assert (found["geometry/means3/original"][2] == 0).all()


def test_arrows_keep_lengths_and_angles_and_are_as_long_as_one_on_average():
    # Four class means lie in three axes, so that nothing is lost.
    arrows = ARRAYS["geometry/means3/original"]
    assert np.linalg.norm(arrows, axis=1).mean() == pytest.approx(1, abs=1e-5)
    np.testing.assert_allclose(degrees(arrows), ARRAYS["angles/means/original"], atol=1e-2)
    np.testing.assert_allclose(arrows.sum(0), 0, atol=1e-5)


def test_gold_is_turned_onto_the_original_and_the_unlearned_model_is_not():
    original = MODELS["original"]
    turn = torch.linalg.qr(torch.randn(8, 8, generator=seen.rng(3)))[0]
    other = turned(original, turn)
    found = figures.geometry({"original": original, "unlearned": other, "gold": other})
    for kind in ("means3", "head3"):
        first = found[f"geometry/{kind}/original"]
        np.testing.assert_allclose(found[f"geometry/{kind}/gold"], first, atol=1e-4)
        assert np.abs(found[f"geometry/{kind}/unlearned"] - first).max() > 0.1


# Strength


def test_without_a_projection_there_is_no_strength():
    assert not any(name.startswith("strength/") for name in figures.figures(MODELS))


@pytest.mark.parametrize("at", [0, 7, 20])
def test_angles_along_strength_are_those_of_the_original_so_far_projected(at):
    along, gone = BASIS.numpy(), int(at == 20)
    strength = ARRAYS["strength/values"][at]
    assert strength == pytest.approx(at / 20, abs=1e-6)
    original = MODELS["original"]
    for kind, rows in (("mean", means(original)), ("head", original.head.numpy())):
        cut = rows - strength * (rows @ along.T) @ along
        found = ARRAYS[f"strength/{kind}_angles"][at]
        # At full strength the class is at the centre, and near it float32 is felt.
        np.testing.assert_allclose(found[gone:, gone:], degrees(cut)[gone:, gone:], atol=0.01)


def test_a_class_that_falls_on_the_centre_has_no_angle_any_more():
    original = MODELS["original"]
    basis = torch.nn.functional.normalize((original.head - original.head.mean(0))[:1], dim=1)
    last = figures.figures(MODELS, basis)["strength/head_angles"][-1]
    assert np.isnan(last[0]).all()
    assert np.isfinite(last[1:, 1:]).all()


@pytest.mark.parametrize("masks", [False, True])
def test_accuracies_along_strength_are_those_of_the_projected_features(masks):
    original = unlearned = MODELS["original"]
    bias = torch.tensor([0.5, -1.0, 0.0, 0.3])
    logits = original.logits
    if masks:
        logits = {n: z.index_fill(1, torch.tensor(0), -torch.inf) for n, z in logits.items()}
    unlearned = dataclasses.replace(unlearned, bias=bias, logits=logits)
    found = figures.strengths(original, unlearned, BASIS)
    for name in ("forget", "retain"):
        z, y = original.features[f"test_{name}"]["penultimate"], original.y[f"test_{name}"]
        for i, strength in enumerate(found["strength/values"].tolist()):
            said = (z - strength * (z @ BASIS.T) @ BASIS) @ original.head.T + bias
            if masks and i:
                said[:, 0] = -torch.inf
            share = float((said.argmax(1) == y).double().mean())
            assert found[f"strength/{name}_accuracy"][i] == pytest.approx(share, abs=1e-6)
    ends = found["strength/forget_accuracy"][[0, -1]]
    assert ends[0] > 0.8
    assert ends[1] == 0 or not masks
