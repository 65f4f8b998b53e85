"""Neural collapse: what features and heads do not have is said, and absent classes are left out."""

import math

import numpy as np
import pytest
import torch
from seen import SAMPLED, cloud, collapsed, read, trained

from core.geometry import collapse
from core.geometry.collapse import Undefined, angles, centred, class_means
from core.metrics.base import Unavailable


@pytest.mark.parametrize("name", SAMPLED)
def test_an_absent_class_is_left_out(name):
    z, y, head = cloud()
    kept = y != 4
    got = read(name, trained(z[kept], y[kept], head)).value
    rows = [0, 1, 2, 3, 5]
    renamed = torch.tensor([0, 1, 2, 3, -1, 4])[y[kept]]
    assert got == pytest.approx(read(name, trained(z[kept], renamed, head[rows])).value, abs=1e-12)


def test_an_absent_class_is_named_and_no_zero_mean():
    z, y, _ = cloud()
    found = class_means(z[y != 4], y[y != 4], 6)
    assert found.missing == (4,)
    assert found.classes == (0, 1, 2, 3, 5)
    assert found.means.shape == (5, 9)
    assert not (found.means == 0).all(1).any()


# What is not defined is said, not guessed


@pytest.mark.parametrize("name", SAMPLED)
@pytest.mark.parametrize("value", [0.0, 0.1, 7.3])
def test_constant_features_are_refused(name, value):
    _, y, head = cloud()
    with pytest.raises(Unavailable, match="coincide"):
        read(name, trained(torch.full((len(y), 9), value), y, head.float()))


@pytest.mark.parametrize("name", SAMPLED)
@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_features_that_are_not_finite_are_refused(name, value):
    z, y, head = cloud()
    model = trained(z, y, head)
    model.features["retain"]["penultimate"][3, 1] = value
    with pytest.raises(Unavailable, match="not finite"):
        read(name, model)


@pytest.mark.parametrize("name", SAMPLED)
def test_a_single_class_is_refused(name):
    z, y, head = cloud()
    with pytest.raises(Unavailable, match="fewer than two classes"):
        read(name, trained(z[y == 1], y[y == 1], head))


def test_a_class_of_one_sample_has_a_mean_but_no_spread():
    z, y, head = cloud()
    kept = (y != 4) | (torch.arange(len(y)) == 4 * 40)
    found = class_means(z[kept], y[kept], 6)
    spreads = [np.cov(z[y == c].numpy().T, bias=True) for c in (0, 1, 2, 3, 5)]
    np.testing.assert_allclose(collapse.within(z[kept], found), np.mean(spreads, 0), atol=1e-12)
    assert math.isfinite(read("nc1", trained(z[kept], y[kept], head)).value)


def test_classes_of_one_sample_each_have_no_nc1():
    z, y, head = cloud()
    with pytest.raises(Unavailable, match="two samples"):
        read("nc1", trained(z[::40], y[::40], head))
    assert read("angle_means", trained(z[::40], y[::40], head)).n == 6


def test_a_class_at_the_centre_of_the_others_has_no_angle():
    model = collapsed()
    u = model.head[0].double() / model.head[0].norm()
    z, y = model.at("penultimate", "forget", "retain"), model.labels("forget", "retain")
    z = z - (z @ u)[:, None] * u
    projected = trained(z, y, model.head)
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
            read(name, trained(z, y, torch.zeros_like(head)))
    with pytest.raises(Undefined, match="zero"):
        collapse.equinorm(torch.zeros(3, 2))
