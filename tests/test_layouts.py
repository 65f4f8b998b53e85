"""Maps share one coordinate system, show no change where there is none, and refuse nonsense."""

from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numpy as np
import pytest
import torch
from torch import Tensor

from core.geometry.project import METHODS, Flat, NoLayout, joint, layout, pca
from core.registry import UnknownName

M, D = 60, 12
LABELS = torch.arange(M) % 3
every_method = pytest.mark.parametrize("method", METHODS)


def features(seed: int = 0) -> Tensor:
    """Three classes, 12 standard deviations apart."""
    rng = torch.Generator().manual_seed(seed)
    means = 12 * torch.eye(3, D)
    return means[LABELS] + torch.randn(M, D, generator=rng)


def turn(seed: int = 5) -> Tensor:
    rng = torch.Generator().manual_seed(seed)
    return torch.linalg.qr(torch.randn(D, D, generator=rng, dtype=torch.float64)).Q


@cache
def drawn(method: str) -> dict[str, np.ndarray]:
    """Unlearned keeps every other row; gold is another network's."""
    original = features()
    unlearned = original.clone()
    unlearned[1::2] += 1 + features(1)[1::2] / 4
    return layout(method, original, unlearned, (features(2).double() @ turn()).float(), seed=0)


@every_method
def test_each_model_gets_its_rows(method):
    assert list(drawn(method)) == ["original", "unlearned", "gold"]
    for points in drawn(method).values():
        assert points.shape == (M, 2)
        assert points.dtype == np.float32
        assert np.isfinite(points).all()


@every_method
def test_rows_that_did_not_change_do_not_move_and_the_others_do(method):
    original, unlearned = drawn(method)["original"], drawn(method)["unlearned"]
    assert (original[::2] == unlearned[::2]).all()
    assert (original[1::2] != unlearned[1::2]).any(1).all()


@every_method
def test_doing_nothing_gives_identical_maps(method):
    same = features()
    found = layout(method, same, same.clone(), same.clone(), seed=0)
    assert (found["original"] == found["unlearned"]).all()
    assert (found["original"] == found["gold"]).all()


@every_method
def test_the_same_seed_gives_the_same_map(method):
    again = drawn.__wrapped__(method)
    for who, points in drawn(method).items():
        assert (points == again[who]).all()


@every_method
def test_classes_that_are_apart_stay_apart_in_every_model(method):
    points = np.concatenate(list(drawn(method).values()))
    labels = np.tile(LABELS.numpy(), 3)
    far = np.linalg.norm(points[:, None] - points[None], axis=2)
    np.fill_diagonal(far, np.inf)
    assert (labels[far.argmin(1)] == labels).all()


def test_models_share_one_origin():
    original = features()
    shift = 30 * torch.eye(D)[4]
    found = layout("pca", original, original + shift, None, seed=0)
    moved = found["unlearned"] - found["original"]
    # The shift is the widest direction by far, so the map shows nearly all of it.
    assert np.linalg.norm(moved, axis=1).min() > 29
    assert moved.std(0).max() < 1e-4  # float32: the same for every row


def test_gold_is_turned_onto_the_original():
    original = features()
    gold = original.double() @ turn() + 7
    gold[:, 0] = 2 * gold[0, 0] - gold[:, 0]  # a reflection, too
    found = layout("pca", original, original, gold, seed=0)
    # float32 coordinates of order 10
    np.testing.assert_allclose(found["gold"], found["original"], rtol=0, atol=1e-4)


def test_gold_is_turned_by_retained_rows_where_they_are_given():
    original, retained = features(), LABELS > 0
    gold = original.double() @ turn()
    gold[~retained] = gold[retained].mean(0) + features(3)[~retained].double()
    found = layout("pca", original, original, gold, seed=0, retained=retained)
    kept = retained.numpy()
    np.testing.assert_allclose(found["gold"][kept], found["original"][kept], rtol=0, atol=1e-4)
    found = layout("pca", original, original, gold, seed=0)
    assert np.abs(found["gold"][kept] - found["original"][kept]).max() > 0.1


def test_gold_keeps_its_size():
    original = features()
    gold = 0.5 * original.double() @ turn()
    found = layout("pca", original, original, gold, seed=0)
    half = found["original"].std(0) / 2
    np.testing.assert_allclose(found["gold"].std(0), half, rtol=1e-4)


def test_pca_places_rows_on_the_axes_of_largest_variance():
    rows = features().double().numpy()
    z = rows - rows.mean(0)
    _, size, axes = np.linalg.svd(z, full_matrices=False)
    found = pca(rows)
    np.testing.assert_allclose(np.abs(found), np.abs(z @ axes[:2].T), rtol=0, atol=1e-9)
    np.testing.assert_allclose(np.linalg.norm(found, axis=0), size[:2], rtol=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_pca_does_not_flip(seed):
    rows = features(seed).double().numpy()
    loadings = (rows - rows.mean(0)).T @ pca(rows)
    largest = np.take_along_axis(loadings, np.abs(loadings).argmax(0)[None], 0)
    assert (largest > 0).all()


def test_one_feature_is_drawn_on_a_line():
    found = joint("pca", {"original": features()[:, :1]})["original"]
    assert (found[:, 1] == 0).all()
    assert found[:, 0].std() > 1


@every_method
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_few_rows_are_drawn_all_the_same(method, n):
    found = layout(method, features()[:n], features(1)[:n], None, seed=0)
    few = joint(method, {"original": features()[: max(2, n)]})
    for points in (*found.values(), *few.values()):
        assert np.isfinite(points).all()
        assert points.shape[1] == 2


@every_method
@pytest.mark.parametrize("noise", [0.0, 1e-7])
def test_constant_features_are_refused(method, noise):
    flat = 3 + noise * features()
    with pytest.raises(Flat, match="unlearned model's features are constant"):
        layout(method, features(), flat, None, seed=0)


@every_method
@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
def test_features_that_are_not_finite_are_refused(method, bad):
    broken = features()
    broken[3, 4] = bad
    with pytest.raises(NoLayout, match="unlearned model's features are not finite"):
        layout(method, features(), broken, None, seed=0)


def test_features_of_other_shapes_are_refused():
    with pytest.raises(NoLayout, match="differ in shape"):
        layout("pca", features(), features()[:, :5], None, seed=0)
    with pytest.raises(NoLayout, match="no features"):
        layout("pca", features()[:0], features()[:0], None, seed=0)


def test_gold_needs_rows_to_be_turned_by():
    nothing = torch.zeros(M, dtype=torch.bool)
    with pytest.raises(NoLayout, match="Gold cannot be turned"):
        layout("pca", features(), features(), features(1), seed=0, retained=nothing)


def test_an_unknown_method_names_the_known_ones():
    with pytest.raises(UnknownName, match="pca, tsne, umap"):
        layout("mds", features(), features(), None, seed=0)


@pytest.mark.parametrize("method", ["tsne", "umap"])
def test_two_threads_draw_at_once_and_both_finish(method):
    original = features()

    def fit(_: int) -> np.ndarray:
        return joint(method, {"original": original})["original"]

    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(fit, range(2))
    assert (first == second).all()


def test_stages_are_told_and_may_stop_the_fit():
    told = []
    layout("pca", features(), features(), features(1), seed=0, on_stage=told.append)
    assert told == ["align", "fit"]

    def stop(stage: str) -> None:
        raise InterruptedError(stage)

    with pytest.raises(InterruptedError):
        layout("pca", features(), features(), None, seed=0, on_stage=stop)
