"""Neural collapse: zero where it is exact, textbook formulas elsewhere, intervals as wide."""

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from seen import SAMPLED, cloud, collapsed, read, trained
from torch import Tensor

from core.geometry import collapse
from core.geometry.collapse import ClassMeans, angles, centred, class_means
from core.geometry.etf import ideal_angle

NAMES = (*SAMPLED, "angle_head")
ZERO = NAMES[:6]
"""What is 0 under exact collapse."""


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


@pytest.mark.parametrize("name", ZERO)
def test_exact_collapse_reads_zero(name):
    got = read(name, collapsed())
    assert (got.value, got.low, got.high) == pytest.approx((0, 0, 0), abs=1e-12)  # float64


@pytest.mark.parametrize(("k", "ideal"), [(9, 97.181), (10, 96.379), (21, 92.866), (100, 90.579)])
def test_exact_collapse_has_the_ideal_angle(k, ideal):
    model = collapsed(k, 128, 2)
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
    got = read(name, trained(z, y, head, bias)).value
    assert got == pytest.approx(expected[name], abs=2e-6)  # the textbook's arccos at 180 degrees


@pytest.mark.parametrize("name", SAMPLED)
def test_classes_count_alike_however_many_samples_they_have(name):
    z, y, head = cloud()
    thrice = torch.cat([torch.arange(len(y)), *2 * [(y == 2).nonzero().flatten()]])
    got, before = read(name, trained(z[thrice], y[thrice], head)), read(name, trained(z, y, head))
    assert got.value == pytest.approx(before.value, abs=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_turning_features_and_head_together_changes_nothing(name):
    z, y, head = cloud()
    turn = torch.linalg.qr(torch.randn(9, 9, generator=torch.Generator().manual_seed(3)).double())[
        0
    ]
    got = read(name, trained(3 * z @ turn, y, head @ turn)).value
    assert got == pytest.approx(read(name, trained(z, y, head)).value, abs=1e-9)  # float64


@pytest.mark.parametrize("name", [n for n in SAMPLED if n != "nc4"])
def test_moving_all_features_changes_nothing(name):
    z, y, head = cloud()
    assert read(name, trained(z + 7, y, head)).value == pytest.approx(
        read(name, trained(z, y, head)).value, abs=1e-9
    )


def test_a_vector_added_to_all_head_rows_changes_raw_angles_alone():
    z, y, head = cloud()
    moved = head + 3
    assert read("angle_head", trained(z, y, moved)).value == pytest.approx(
        read("angle_head", trained(z, y, head)).value, abs=1e-9
    )
    assert (pairs(angles(moved)) - pairs(angles(head))).abs().max() > 10
    rows = centred(head)
    torch.testing.assert_close(angles(rows), angles(centred(rows)), atol=1e-6, rtol=0)


def test_a_head_edit_moves_nc3_and_leaves_the_features_readings():
    model = collapsed()
    edited = model.head.clone()
    edited[0] = 0
    z, y = model.at("penultimate", "forget", "retain"), model.labels("forget", "retain")
    after = trained(z, y, edited)
    assert read("nc3", after).value > 0.01
    for name in ("nc1", "nc2_equinorm", "nc2_equiangular", "angle_means"):
        assert read(name, after).value == read(name, model).value


def test_nc4_counts_the_answers_that_a_bias_turns():
    model = collapsed()
    z, y = model.at("penultimate", "forget", "retain"), model.labels("forget", "retain")
    pushed = torch.zeros(10)
    pushed[1] = 100.0
    assert read("nc4", trained(z, y, model.head, pushed)).value == pytest.approx(0.9)


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
        taken, expected = read(name, trained(z, y, head)), 2 * 1.96 * float(np.std(drawn))
        # Standard error 5 % at 200 draws, and a curved quantity is not quite its slope.
        assert taken.high - taken.low == pytest.approx(expected, rel=0.25), name


def test_the_head_has_no_samples_and_no_width():
    got = read("angle_head", collapsed())
    assert got.low == got.value == got.high
    assert got.n == 10


def test_readings_work_on_inference_tensors():
    z, y, head = cloud()
    outside = {name: read(name, trained(z, y, head)).value for name in NAMES}
    with torch.inference_mode():
        model = trained(z.clone(), y.clone(), head.clone())
        within = {name: read(name, model).value for name in NAMES}
    assert within == outside
    assert {name: read(name, model).value for name in NAMES} == outside
