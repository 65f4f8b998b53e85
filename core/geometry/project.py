"""Project: maps of the plane, one coordinate system for all models: PCA, t-SNE, UMAP."""

import importlib
import os
import threading
import warnings
from collections.abc import Callable, Mapping
from functools import cache
from types import ModuleType

import numpy as np
import torch
from torch import Tensor

from core import registry
from core.data.download import home
from core.geometry.align import Undefined, procrustes

__support__ = True

Array = np.ndarray
OnStage = Callable[[str], None]
"""Called with `align` and `fit` as they begin; it may raise to stop."""

FLAT = 1e-6
"""A spread below this share of the features' size is float32 rounding, which t-SNE and UMAP
would draw as clusters: they adapt to any scale."""
FEW = 4
"""Fewer different points than this have no neighbourhoods: PCA draws them."""
DIMS = 30
"""Principal axes that t-SNE and UMAP see; of 64 features they hold over 99 % of the spread."""
PERPLEXITY, NEIGHBOURS = 30.0, 15
ITERATIONS, ANGLE, EPOCHS = 500, 0.8, 200

_LOCK = threading.Lock()
"""Round each fit: two threads in numba's default threading layer abort the process."""


class NoLayout(ValueError):
    """Features that no map can show; the text is one sentence."""


class Flat(NoLayout):
    """Features without any spread."""


def silent(stage: str) -> None:
    """An `OnStage` for nobody."""


def layout(
    method: str,
    original: Tensor,
    unlearned: Tensor,
    gold: Tensor | None,
    *,
    seed: int,
    retained: Tensor | None = None,
    on_stage: OnStage | None = None,
) -> dict[str, Array]:
    """Points (m 2, float32) by model, for features (m d) of the same rows.

    As `joint`.
    """
    features = {"original": original, "unlearned": unlearned}
    if gold is not None:
        features["gold"] = gold
    return joint(method, features, seed=seed, retained=retained, on_stage=on_stage or silent)


def joint(
    method: str,
    features: Mapping[str, Tensor | Array],
    *,
    seed: int = 0,
    retained: Tensor | Array | None = None,
    on_stage: OnStage = silent,
) -> dict[str, Array]:
    """One fit of `pca`, `tsne` or `umap` to the features (m d) of all models together.

    Gold, trained from other weights, has axes of its own and is first turned onto the original,
    by its `retained` rows (m, bool; all by default). Rows that are equal bit by bit, of whichever
    models, are one point of the fit, so a method that changes nothing moves nothing.

    Raises:
        UnknownName: no such method.
        Flat: a model's features are constant.
        NoLayout: features that are not finite, or whose shapes do not fit.
    """
    fit = registry.find(METHODS, method, "map")
    points = {who: _rows(who, z) for who, z in features.items()}
    if len({z.shape for z in points.values()}) > 1:
        raise NoLayout("The models' features differ in shape, so that no map can hold them all.")
    if "gold" in points:
        on_stage("align")
        points["gold"] = _turned(points["gold"], points["original"], retained)
    different, places = _unique(np.concatenate(list(points.values())))
    if len(different) < FEW:
        fit = pca
    on_stage("fit")
    with _LOCK:
        drawn = fit(different, seed).astype(np.float32)[places]
    return dict(zip(points, np.split(drawn, len(points)), strict=True))


def _rows(who: str, features: Tensor | Array) -> Array:
    """Features (m d) in double precision, fit to be drawn."""
    if isinstance(features, Tensor):
        features = features.detach().cpu().numpy()
    z = features.astype(np.float64)
    if not np.isfinite(z).all():
        raise NoLayout(f"The {who} model's features are not finite: its run diverged.")
    if z.ndim != 2 or not z.size:
        raise NoLayout(f"The {who} model has no features to draw.")
    if len(z) > 1 and np.abs(z - z.mean(0)).max() <= FLAT * np.abs(z).max():
        raise Flat(f"There is no map, because the {who} model's features are constant.")
    return z


def _unique(rows: Array) -> tuple[Array, Array]:
    """The different rows, and where among them each row is."""
    different, places = np.unique(rows, axis=0, return_inverse=True)
    return different, places.reshape(-1)


def _turned(gold: Array, original: Array, retained: Tensor | Array | None) -> Array:
    """Gold (m d) rotated and shifted onto the original; sizes are left as they are.

    Schoenemann 1966, doi.org/10.1007/BF02289451. Differs: without its scale, which shrinks the
    worse the fit is, and would make gold look tighter.
    """
    if np.array_equal(gold, original):
        return gold
    keep = np.ones(len(gold), bool) if retained is None else np.asarray(retained, bool)
    try:
        turn = procrustes(torch.from_numpy(gold[keep]), torch.from_numpy(original[keep]))
    except Undefined as error:
        raise NoLayout(f"Gold cannot be turned onto the original, because {error}.") from None
    different, places = _unique(gold)
    moved = (torch.from_numpy(different) - turn.start) @ turn.rotation + turn.end
    return moved.numpy()[places]


def pca(rows: Array, seed: int = 0, dims: int = 2) -> Array:
    """Coordinates (n dims) along the principal axes, zero where there are no more axes.

    Of the two directions of an axis, its largest loading is positive.
    """
    z = rows - rows.mean(0)
    axes = np.linalg.eigh(z.T @ z).eigenvectors[:, ::-1][:, :dims]
    largest = np.take_along_axis(axes, np.abs(axes).argmax(0)[None], 0)
    placed = z @ (axes * np.where(largest < 0, -1, 1))
    return np.pad(placed, ((0, 0), (0, max(0, dims - placed.shape[1]))))


def _tsne(rows: Array, seed: int) -> Array:
    """van der Maaten and Hinton 2008, jmlr.org/papers/v9/vandermaaten08a.html."""
    from sklearn.manifold import TSNE
    from threadpoolctl import threadpool_limits

    z = pca(rows, dims=DIMS).astype(np.float32)
    fit = TSNE(
        init=1e-4 * z[:, :2] / z[:, 0].std(),
        perplexity=min(PERPLEXITY, (len(z) - 1) / 3),
        max_iter=ITERATIONS,
        angle=ANGLE,
        random_state=seed,
    )
    # Sums over threads depend on which ends first, and on shared cores threads wait for each other.
    with threadpool_limits(1, "openmp"):
        return fit.fit_transform(z)


def _umap(rows: Array, seed: int) -> Array:
    """McInnes et al. 2018, arxiv.org/abs/1802.03426. Differs: starts from PCA, so that the map's
    orientation does not change from run to run.
    """
    umap = _lean_umap()
    z = pca(rows, dims=DIMS).astype(np.float32)
    near = min(NEIGHBOURS, len(z) - 1)
    fit = umap.UMAP(
        n_neighbors=near,
        precomputed_knn=(*_nearest(z, near), None),
        init=10 * z[:, :2] / np.abs(z[:, :2]).max(),
        n_epochs=EPOCHS,
        random_state=seed,
        n_jobs=1,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # it could not place new points; none come
        return fit.fit_transform(z)


def _nearest(z: Array, count: int) -> tuple[Array, Array]:
    """Row numbers and distances (n count) of the nearest points, each point itself first."""
    from sklearn.neighbors import NearestNeighbors

    far, rows = NearestNeighbors(n_neighbors=count - 1, algorithm="brute").fit(z).kneighbors()
    own = np.arange(len(z))[:, None]
    return np.hstack([own, rows]).astype(np.int32), np.pad(far, ((0, 0), (1, 0))).astype(np.float32)


@cache
def _lean_umap() -> ModuleType:
    """umap-learn, without the compilation of what is not used here.

    As it comes, the first import compiles for 22 s of processor time and the first fit for 8 s;
    so, 4 s are left, and nearly none once they are in the cache.
    """
    os.environ.setdefault("NUMBA_CACHE_DIR", str(home() / "numba"))
    numba = importlib.import_module("numba")  # whose types hide its settings
    numba.config.CACHE_DIR = os.environ["NUMBA_CACHE_DIR"]
    was, numba.config.DISABLE_JIT = numba.config.DISABLE_JIT, True
    try:
        import pynndescent  # noqa: F401 - compiles on import; `_nearest` stands in for it
    finally:
        numba.config.DISABLE_JIT = was
    import umap
    from umap import layouts, umap_

    for compiled in (umap_.smooth_knn_dist, umap_.compute_membership_strengths):
        compiled.targetoptions["parallel"] = False  # three times the compilation, and threads
        compiled.enable_caching()
    layouts._nb_optimize_layout_euclidean_single_epoch.enable_caching()
    return umap


METHODS: Mapping[str, Callable[[Array, int], Array]] = {"pca": pca, "tsne": _tsne, "umap": _umap}
