"""The simplex frame is what its formula says, in every size that a head may have."""

import pytest
import torch

from core.geometry.etf import ideal_angle, ideal_cosine, simplex_etf

SIZES = [(2, 1), (2, 2), (3, 2), (3, 8), (4, 4), (10, 9), (10, 64), (100, 99), (100, 128)]
EXACT = 1e-12  # float64, some hundred roundings


@pytest.fixture(params=SIZES, ids=lambda size: "{}x{}".format(*size))
def frame(request):
    classes, width = request.param
    return simplex_etf(classes, width, torch.Generator().manual_seed(0))


def test_vertices_have_unit_length(frame):
    torch.testing.assert_close(frame.norm(dim=1), torch.ones(len(frame)).double(), **exact())


def test_any_two_vertices_have_the_ideal_cosine(frame):
    cosines = (frame @ frame.T)[~torch.eye(len(frame), dtype=torch.bool)]
    ideal = torch.full_like(cosines, -1 / (len(frame) - 1))
    torch.testing.assert_close(cosines, ideal, **exact())


def test_vertices_sum_to_nothing(frame):
    torch.testing.assert_close(frame.sum(0), torch.zeros(frame.shape[1]).double(), **exact())


def test_vertices_span_one_dimension_less_than_there_are(frame):
    assert torch.linalg.matrix_rank(frame) == len(frame) - 1


def test_without_a_generator_the_frame_is_the_formula():
    k = torch.tensor(4.0, dtype=torch.float64)
    formula = (k / (k - 1)).sqrt() * (torch.eye(4, dtype=torch.float64) - 1 / k)
    torch.testing.assert_close(simplex_etf(4, 6)[:, :4], formula, **exact())
    assert not simplex_etf(4, 6)[:, 4:].any()


def test_a_generator_turns_the_frame_and_no_more():
    plain, turned = simplex_etf(5, 7), simplex_etf(5, 7, torch.Generator().manual_seed(1))
    assert not torch.allclose(plain, turned)
    torch.testing.assert_close(plain @ plain.T, turned @ turned.T, **exact())


@pytest.mark.parametrize(
    ("classes", "degrees"), [(3, 120), (9, 97.181), (10, 96.379), (21, 92.866), (100, 90.579)]
)
def test_the_ideal_angle(classes, degrees):
    assert ideal_angle(classes) == pytest.approx(degrees, abs=5e-4)  # three printed decimals
    assert ideal_cosine(classes) == -1 / (classes - 1)


@pytest.mark.parametrize(("classes", "width"), [(1, 4), (0, 4), (5, 3)])
def test_a_frame_that_cannot_be_is_refused(classes, width):
    with pytest.raises(ValueError, match="simplex"):
        simplex_etf(classes, width)


def exact():
    return {"atol": EXACT, "rtol": 0}
