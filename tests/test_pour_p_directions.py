"""POUR-P: which direction it takes out, what is left of a class, and what it refuses."""

import pytest
import torch
from torch.nn.functional import normalize
from toys import EXACT, WIDTH, ask, cut, draw, frame, matrix, one_hot, toy

from core.data.targets import TargetError
from core.geometry.etf import simplex_etf
from core.models.classifier import Transform
from core.models.projection import Projection, orthonormal
from core.unlearners.pour_d import PourD
from core.unlearners.pour_p import PourP


def test_the_head_row_needs_no_image_and_the_class_mean_only_the_forget_set():
    model = toy(draw(10, WIDTH, seed=3), draw(10, WIDTH))
    assert ask(PourP(), model, 3).read == {"forget": 0, "retain": 0}
    done = ask(PourP(direction="class mean"), model, 3)
    assert done.read == {"forget": 4, "retain": 0}
    expected = Projection(orthonormal(draw(10, WIDTH, seed=3)[3:4]))
    torch.testing.assert_close(matrix(cut(done.model)), matrix(expected), **EXACT)


def test_the_class_mean_is_dangerous_where_classes_share_a_mean():
    common = torch.zeros(WIDTH).double()
    common[-1] = 2  # the frame below leaves the last axis free
    v = simplex_etf(10, WIDTH)
    model, images = toy(v + common, v), one_hot(10, 1).float().x
    row, mean = (ask(PourP(direction=d), model, 3) for d in ("head row", "class mean"))
    rest = torch.arange(10) != 3

    z = row.model.features(images)
    torch.testing.assert_close(z[3], z[rest].mean(0), **EXACT)
    z = mean.model.features(images)
    assert z[3].norm() < 1e-12
    assert z[rest].norm(dim=1).min() > 0.5
    assert "common mean" in mean.note
    assert not row.note


def test_the_class_mean_is_no_danger_where_features_are_centred():
    model = toy(4 * frame(10), frame(10))
    row, mean = (ask(PourP(direction=d), model, 3) for d in ("head row", "class mean"))
    torch.testing.assert_close(matrix(cut(row.model)), matrix(cut(mean.model)), **EXACT)
    assert not mean.note


def test_what_all_rows_share_decides_the_direction_unless_it_is_taken_off():
    w, shift = frame(10), 3 * normalize(draw(1, WIDTH, seed=1))

    def found(head, centring):
        return matrix(cut(ask(PourP(centring=centring), toy(frame(10), head), 3).model))

    for centring in ("on", "auto"):
        torch.testing.assert_close(found(w + shift, centring), found(w, "off"), **EXACT)
    assert not torch.allclose(found(w + shift, "off"), found(w, "off"), atol=0.1)
    torch.testing.assert_close(found(w, "on"), found(w, "off"), **EXACT)
    slight = w + 0.04 * normalize(shift)  # below the 5 % from which `auto` centres
    assert torch.equal(found(slight, "auto"), found(slight, "off"))


def test_noise_about_a_forgotten_mean_is_all_that_remains():
    v, n, sigma = frame(10), 20_000, 0.1
    project = Projection(orthonormal(v[3:4]))
    z = project(v[3] + sigma * draw(n, WIDTH))
    # The standard error of a mean is sigma / sqrt(n), that of a covariance sigma^2 sqrt(2 / n);
    # five of them are allowed.
    assert z.mean(0).abs().max() < 5 * sigma / n**0.5
    assert (torch.cov(z.T) - sigma**2 * matrix(project)).abs().max() < 5 * sigma**2 * (2 / n) ** 0.5


def test_nearest_means_tell_the_retained_classes_apart_as_before():
    v, y = frame(10), torch.arange(4, 10).repeat(50)
    z = v[y] + 0.05 * draw(len(y), WIDTH)
    project = Projection(orthonormal(v[3:4]))
    for features, means in ((z, v), (project(z), project(v))):
        assert (torch.cdist(features, means[4:]).argmin(1) + 4 == y).all()


@pytest.mark.parametrize(("classes", "labels"), [(2, (0,)), (3, (0, 1)), (10, tuple(range(9)))])
def test_fewer_than_two_survivors_are_refused(classes, labels):
    model = toy(frame(classes), frame(classes))
    for method in (PourP(), PourD()):
        with pytest.raises(TargetError, match="two classes must survive"):
            ask(method, model, *labels)


def test_survivors_are_counted_over_requests_one_after_another():
    done = ask(PourP(), toy(frame(3), frame(3)), 0).model
    with pytest.raises(TargetError, match="two classes must survive"):
        ask(PourP(), done, 1)


def test_a_class_that_is_masked_already_is_no_survivor():
    model = toy(frame(3), frame(3))
    model.masked[0] = True
    with pytest.raises(TargetError, match="two classes must survive"):
        ask(PourP(), model, 1)


def test_the_two_survivors_of_three_are_opposite():
    model = toy(frame(3), frame(3))
    z = normalize(ask(PourP(), model, 0).model.features(one_hot(3, 1).float().x).detach())
    assert float(z[1] @ z[2]) == pytest.approx(-1, abs=1e-12)


def test_a_class_without_a_direction_is_refused():
    w = draw(10, WIDTH)
    w[3] = 0
    with pytest.raises(TargetError, match="length zero"):
        ask(PourP(centring="off"), toy(frame(10), w), 3)
    features = frame(10)
    features[3] = 0
    with pytest.raises(TargetError, match="length zero"):
        ask(PourP(direction="class mean"), toy(features, frame(10)), 3)


def test_a_transform_that_cannot_be_joined_is_refused():
    half = ask(PourP(strength=0.5), toy(frame(10), frame(10)), 3).model
    with pytest.raises(TargetError, match="another strength"):
        ask(PourP(), half, 4)
    half.transform = Transform()
    with pytest.raises(TargetError, match="another transform"):
        ask(PourP(), half, 4)
