"""Neural collapse: zero where it is exact, textbook formulas elsewhere, absent classes left out."""

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from core.geometry import collapse
from core.geometry.collapse import ClassMeans, Undefined, angles, centred, class_means
from core.geometry.etf import ideal_angle, simplex_etf
from core.metrics import METRICS
from core.metrics.base import Measured, Unavailable
from core.metrics.outputs import Outputs

SAMPLED = ("nc1", "nc2_equinorm", "nc2_equiangular", "nc2_max_angle", "nc3", "nc4", "angle_means")
NAMES = (*SAMPLED, "angle_head")
ZERO = NAMES[:6]
"""What is 0 under exact collapse."""


def shown(z: Tensor, y: Tensor, head: Tensor, bias: Tensor | None = None, gone: int = 0) -> Outputs:
    """A model with these training features (n d), labels and head; class `gone` is to go."""
    bias = torch.zeros(len(head)) if bias is None else bias
    rows = {"forget": y == gone, "retain": y != gone}
    logits = z.double() @ head.T.double() + bias
    return Outputs(
        taps=("penultimate",),
        features={n: {"penultimate": z[r]} for n, r in rows.items()},
        logits={n: logits[r] for n, r in rows.items()},
        y={n: y[r] for n, r in rows.items()},
        ids={n: r.nonzero().flatten() for n, r in rows.items()},
        head=head,
        bias=bias,
        forget_classes=(gone,),
    )


def read(name: str, model: Outputs) -> Measured:
    return METRICS[name]().measure(model, None, "penultimate", 0)


def cloud(k: int = 6, d: int = 9, n: int = 40, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """Features of `n` samples a class about random means, labels, and a head of its own."""
    rng = torch.Generator().manual_seed(seed)
    y = torch.arange(k).repeat_interleave(n)
    means = 2 * torch.randn(k, d, generator=rng, dtype=torch.float64)
    z = means[y] + torch.randn(k * n, d, generator=rng, dtype=torch.float64)
    return z, y, torch.randn(k, d, generator=rng, dtype=torch.float64)


def pairs(matrix: Tensor) -> Tensor:
    row, column = torch.triu_indices(len(matrix), len(matrix), 1)
    return matrix[row, column]


def textbook(z: np.ndarray, y: np.ndarray, w: np.ndarray, b: np.ndarray) -> dict[str, float]:
    """The same quantities by loops, from the definitions, for balanced classes."""
    classes = sorted(set(y.tolist()))
    k, d = len(classes), z.shape[1]
    mu = [z[y == c].mean(0) for c in classes]
    mid = sum(mu) / k
    sw, sb = np.zeros((d, d)), np.zeros((d, d))
    for c, m in zip(classes, mu, strict=True):
        sb += np.outer(m - mid, m - mid) / k
        for row in z[y == c]:
            sw += np.outer(row - m, row - m) / len(z)
    m = np.stack([v - mid for v in mu])
    w0 = w - w.mean(0)

    def cosines(v: np.ndarray) -> np.ndarray:
        found = []
        for i in range(k):
            for j in range(i):
                found.append(v[i] @ v[j] / math.sqrt(v[i] @ v[i]) / math.sqrt(v[j] @ v[j]))
        return np.array(found)

    lengths = np.array([math.sqrt(v @ v) for v in m])
    wrong = 0
    for row in z:
        distance = [np.square(row - v).sum() for v in mu]
        wrong += int(np.argmax(w @ row + b) != np.argmin(distance))
    return {
        "nc1": float(np.trace(sw @ np.linalg.pinv(sb, rcond=1e-6)) / k),
        "nc2_equinorm": float(lengths.std() / lengths.mean()),
        "nc2_equiangular": float(cosines(m).std()),
        "nc2_max_angle": float(np.abs(cosines(m) + 1 / (k - 1)).mean()),
        "nc3": float(np.square(w / np.linalg.norm(w) - m / np.linalg.norm(m)).sum()),
        "nc4": wrong / len(z),
        "angle_means": float(np.degrees(np.arccos(cosines(m).clip(-1, 1))).mean()),
        "angle_head": float(np.degrees(np.arccos(cosines(w0).clip(-1, 1))).mean()),
    }


def exact(k: int = 10, d: int = 64, n: int = 5) -> Outputs:
    vertices = simplex_etf(k, d, torch.Generator().manual_seed(0))
    y = torch.arange(k).repeat_interleave(n)
    return shown(3 * vertices[y] + 0.5, y, 2 * vertices)


@pytest.mark.parametrize("name", ZERO)
def test_exact_collapse_reads_zero(name):
    got = read(name, exact())
    assert (got.value, got.low, got.high) == pytest.approx((0, 0, 0), abs=1e-12)  # float64


@pytest.mark.parametrize(("k", "ideal"), [(9, 97.181), (10, 96.379), (21, 92.866), (100, 90.579)])
def test_exact_collapse_has_the_ideal_angle(k, ideal):
    model = exact(k, 128, 2)
    for name in ("angle_means", "angle_head"):
        assert read(name, model).value == pytest.approx(ideal, abs=5e-4)  # three decimals given
    matrix = angles(centred(model.head))
    assert pairs(matrix).numpy() == pytest.approx(ideal_angle(k), abs=1e-12)  # float64
    assert (matrix.diagonal() == 0).all()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("k", "d"), [(6, 9), (6, 5), (6, 3), (2, 4), (3, 1)])
def test_agrees_with_the_textbook(name, k, d):
    z, y, head = cloud(k, d)
    bias = torch.linspace(-1, 1, k)
    if d == 1 and name in ("nc2_equinorm", "nc3"):
        head = head + 0.1  # any head will do
    expected = textbook(z.numpy(), y.numpy(), head.numpy(), bias.numpy())
    got = read(name, shown(z, y, head, bias)).value
    assert got == pytest.approx(expected[name], abs=2e-6)  # the textbook's arccos at 180 degrees


@pytest.mark.parametrize("name", SAMPLED)
def test_an_absent_class_is_left_out(name):
    z, y, head = cloud()
    kept = y != 4
    got = read(name, shown(z[kept], y[kept], head)).value
    rows = [0, 1, 2, 3, 5]
    renamed = torch.tensor([0, 1, 2, 3, -1, 4])[y[kept]]
    assert got == pytest.approx(read(name, shown(z[kept], renamed, head[rows])).value, abs=1e-12)


def test_an_absent_class_is_named_and_no_zero_mean():
    z, y, _ = cloud()
    found = class_means(z[y != 4], y[y != 4], 6)
    assert found.missing == (4,)
    assert found.classes == (0, 1, 2, 3, 5)
    assert found.means.shape == (5, 9)
    assert not (found.means == 0).all(1).any()


@pytest.mark.parametrize("name", SAMPLED)
def test_classes_count_alike_however_many_samples_they_have(name):
    z, y, head = cloud()
    thrice = torch.cat([torch.arange(len(y)), *2 * [(y == 2).nonzero().flatten()]])
    got, before = read(name, shown(z[thrice], y[thrice], head)), read(name, shown(z, y, head))
    assert got.value == pytest.approx(before.value, abs=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_turning_features_and_head_together_changes_nothing(name):
    z, y, head = cloud()
    turn = torch.linalg.qr(torch.randn(9, 9, generator=torch.Generator().manual_seed(3)).double())[
        0
    ]
    got = read(name, shown(3 * z @ turn, y, head @ turn)).value
    assert got == pytest.approx(read(name, shown(z, y, head)).value, abs=1e-9)  # float64


@pytest.mark.parametrize("name", [n for n in SAMPLED if n != "nc4"])
def test_moving_all_features_changes_nothing(name):
    z, y, head = cloud()
    assert read(name, shown(z + 7, y, head)).value == pytest.approx(
        read(name, shown(z, y, head)).value, abs=1e-9
    )


def test_a_vector_added_to_all_head_rows_changes_raw_angles_alone():
    z, y, head = cloud()
    moved = head + 3
    assert read("angle_head", shown(z, y, moved)).value == pytest.approx(
        read("angle_head", shown(z, y, head)).value, abs=1e-9
    )
    assert (pairs(angles(moved)) - pairs(angles(head))).abs().max() > 10
    rows = centred(head)
    torch.testing.assert_close(angles(rows), angles(centred(rows)), atol=1e-6, rtol=0)


def test_a_head_edit_moves_nc3_and_leaves_the_features_readings():
    model = exact()
    edited = model.head.clone()
    edited[0] = 0
    z, y = model.at("penultimate", "forget", "retain"), model.labels("forget", "retain")
    after = shown(z, y, edited)
    assert read("nc3", after).value > 0.01
    for name in ("nc1", "nc2_equinorm", "nc2_equiangular", "angle_means"):
        assert read(name, after).value == read(name, model).value


def test_nc4_counts_the_answers_that_a_bias_turns():
    model = exact()
    z, y = model.at("penultimate", "forget", "retain"), model.labels("forget", "retain")
    pushed = torch.zeros(10)
    pushed[1] = 100.0
    assert read("nc4", shown(z, y, model.head, pushed)).value == pytest.approx(0.9)


# Intervals


QUANTITIES: dict[str, Callable[[Tensor, ClassMeans, Tensor], Tensor]] = {
    "nc1": lambda z, found, head: collapse.variability(z, found),
    "nc2_equinorm": lambda z, found, head: collapse.equinorm(centred(found.means)),
    "nc2_equiangular": lambda z, found, head: collapse.equiangular(centred(found.means)),
    "nc2_max_angle": lambda z, found, head: collapse.max_angle(centred(found.means)),
    "nc3": lambda z, found, head: collapse.duality(head, found.means),
    "angle_means": lambda z, found, head: collapse.mean_angle(centred(found.means)),
}


def test_intervals_are_as_wide_as_a_bootstrap_of_the_quantity():
    (z, y, head), rng = cloud(n=120), torch.Generator().manual_seed(0)
    values: dict[str, list[float]] = {name: [] for name in QUANTITIES}
    for _ in range(200):
        rows = torch.cat([120 * c + torch.randint(120, (120,), generator=rng) for c in range(6)])
        found = class_means(z[rows], y[rows], 6)
        for name, quantity in QUANTITIES.items():
            values[name].append(float(quantity(z[rows], found, head)))
    for name, drawn in values.items():
        taken, expected = read(name, shown(z, y, head)), 2 * 1.96 * float(np.std(drawn))
        # Standard error 5 % at 200 draws, and a curved quantity is not quite its slope.
        assert taken.high - taken.low == pytest.approx(expected, rel=0.25), name


def test_the_head_has_no_samples_and_no_width():
    got = read("angle_head", exact())
    assert got.low == got.value == got.high
    assert got.n == 10


# What is not defined is said, not guessed


@pytest.mark.parametrize("name", SAMPLED)
@pytest.mark.parametrize("value", [0.0, 0.1, 7.3])
def test_constant_features_are_refused(name, value):
    _, y, head = cloud()
    with pytest.raises(Unavailable, match="coincide"):
        read(name, shown(torch.full((len(y), 9), value), y, head.float()))


@pytest.mark.parametrize("name", SAMPLED)
@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_features_that_are_not_finite_are_refused(name, value):
    z, y, head = cloud()
    model = shown(z, y, head)
    model.features["retain"]["penultimate"][3, 1] = value
    with pytest.raises(Unavailable, match="not finite"):
        read(name, model)


@pytest.mark.parametrize("name", SAMPLED)
def test_a_single_class_is_refused(name):
    z, y, head = cloud()
    with pytest.raises(Unavailable, match="fewer than two classes"):
        read(name, shown(z[y == 1], y[y == 1], head))


def test_a_class_of_one_sample_has_a_mean_but_no_spread():
    z, y, head = cloud()
    kept = (y != 4) | (torch.arange(len(y)) == 4 * 40)
    found = class_means(z[kept], y[kept], 6)
    spreads = [np.cov(z[y == c].numpy().T, bias=True) for c in (0, 1, 2, 3, 5)]
    np.testing.assert_allclose(collapse.within(z[kept], found), np.mean(spreads, 0), atol=1e-12)
    assert math.isfinite(read("nc1", shown(z[kept], y[kept], head)).value)


def test_classes_of_one_sample_each_have_no_nc1():
    z, y, head = cloud()
    with pytest.raises(Unavailable, match="two samples"):
        read("nc1", shown(z[::40], y[::40], head))
    assert read("angle_means", shown(z[::40], y[::40], head)).n == 6


def test_a_class_at_the_centre_of_the_others_has_no_angle():
    model = exact()
    u = model.head[0].double() / model.head[0].norm()
    z, y = model.at("penultimate", "forget", "retain"), model.labels("forget", "retain")
    z = z - (z @ u)[:, None] * u
    projected = shown(z, y, model.head)
    for name in ("angle_means", "nc2_equiangular", "nc2_max_angle"):
        with pytest.raises(Unavailable, match="centre"):
            read(name, projected)
    # One length of ten is 0 and nine are 1.
    assert read("nc2_equinorm", projected).value == pytest.approx(1 / 3, abs=1e-9)
    rows = angles(centred(class_means(z, y, 10).means))
    assert rows[0].isnan().all()
    assert not rows[1:, 1:].isnan().any()


def test_a_zero_head_is_refused():
    z, y, head = cloud()
    for name in ("nc3", "angle_head"):
        with pytest.raises(Unavailable):
            read(name, shown(z, y, torch.zeros_like(head)))
    with pytest.raises(Undefined, match="zero"):
        collapse.equinorm(torch.zeros(3, 2))


def test_readings_work_on_inference_tensors():
    z, y, head = cloud()
    outside = {name: read(name, shown(z, y, head)).value for name in NAMES}
    with torch.inference_mode():
        model = shown(z.clone(), y.clone(), head.clone())
        within = {name: read(name, model).value for name in NAMES}
    assert within == outside
    assert {name: read(name, model).value for name in NAMES} == outside
