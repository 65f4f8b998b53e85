"""A projection takes out a span, once, and leaves a simplex of those that are left."""

import pytest
import torch
from torch.nn.functional import normalize
from toys import EXACT, WIDTH, draw, frame, matrix, rng

from core.geometry.align import cka
from core.geometry.etf import simplex_etf
from core.models.projection import Projection, joined, orthonormal


@pytest.mark.parametrize("k", [1, 2, 5])
def test_a_projection_is_one(k):
    rows = draw(k, WIDTH)
    p = matrix(Projection(orthonormal(rows)))
    torch.testing.assert_close(p, p.T, **EXACT)
    torch.testing.assert_close(p, p @ p, **EXACT)
    torch.testing.assert_close(p @ rows.T, torch.zeros(WIDTH, k).double(), **EXACT)
    assert float(p.trace()) == pytest.approx(WIDTH - k, abs=1e-12)
    values = torch.linalg.eigvalsh(p)
    torch.testing.assert_close(values[:k], torch.zeros(k).double(), **EXACT)
    torch.testing.assert_close(values[k:], torch.ones(WIDTH - k).double(), **EXACT)


@pytest.mark.parametrize(("classes", "k"), [(3, 1), (4, 1), (10, 1), (10, 3), (100, 1), (100, 5)])
def test_the_survivors_of_a_simplex_are_a_simplex(classes, k):
    v = frame(classes, 128)
    left = Projection(orthonormal(v[:k]))(v[k:])
    if k == 1:
        shrunk = torch.full((classes - 1,), 1 - 1 / (classes - 1) ** 2, dtype=torch.float64)
        torch.testing.assert_close(left.square().sum(1), shrunk, **EXACT)
    unit = normalize(left)
    gram = unit @ unit.T
    others = gram[~torch.eye(len(gram), dtype=torch.bool)]
    torch.testing.assert_close(others, torch.full_like(others, -1 / (classes - k - 1)), **EXACT)
    torch.testing.assert_close(unit.sum(0), torch.zeros(128).double(), **EXACT)
    assert torch.linalg.matrix_rank(unit) == classes - k - 1


def test_the_survivors_are_like_any_simplex_of_their_number():
    y = torch.arange(1, 10).repeat(20)
    left = Projection(orthonormal(frame(10)[:1]))(frame(10))[y]
    other = 3 * simplex_etf(9, 40, rng(7))[y - 1] + 5
    assert cka(left, other) == pytest.approx(1, abs=1e-10)  # a ratio of sums over 180 rows
    assert cka(left, other[torch.randperm(180, generator=rng())]) < 0.5


def test_strength_takes_out_that_share():
    rows, z = draw(2, WIDTH), draw(9, WIDTH, seed=1)
    basis = orthonormal(rows)
    along = (z @ basis.T) @ basis
    for strength in (0.0, 0.3, 1.0):
        left = Projection(basis, strength)(z)
        torch.testing.assert_close((left @ basis.T) @ basis, (1 - strength) * along, **EXACT)
    assert torch.equal(Projection(basis, 0.0)(z), z)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_projected_in_single(dtype):
    basis = orthonormal(draw(1, 64)).float()
    z = draw(50, 64, seed=1).to(dtype)
    single = Projection(basis)(z.float())
    assert torch.equal(Projection(basis)(z), single.to(dtype))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(Projection(basis)(z.float()), single)


def test_a_projection_is_rebuilt_from_its_tensors():
    old = Projection(orthonormal(draw(3, WIDTH)), 0.7)
    new = Projection.blank(old.state_dict())
    new.load_state_dict(old.state_dict())
    z = draw(5, WIDTH, seed=1)
    assert torch.equal(new(z), old(z))


def test_a_row_in_the_span_of_others_adds_nothing():
    rows = draw(3, WIDTH)
    rows = torch.stack([rows[0], 2 * rows[1], rows[0] - 5 * rows[1], rows[2]])
    basis = orthonormal(rows)
    torch.testing.assert_close(basis @ basis.T, torch.eye(3).double(), **EXACT)
    torch.testing.assert_close((rows @ basis.T) @ basis, rows, **EXACT)


def test_rows_that_nearly_agree_still_give_an_orthonormal_basis():
    rows = draw(1, WIDTH) + 1e-4 * draw(4, WIDTH, seed=1)
    basis = orthonormal(rows * torch.tensor([[1e-9], [1.0], [1e9], [1.0]]))
    torch.testing.assert_close(basis @ basis.T, torch.eye(4).double(), **EXACT)


@pytest.mark.parametrize("length", [0.0, 1e-13, torch.nan, torch.inf])
def test_a_row_without_a_direction_is_refused(length):
    rows = normalize(draw(2, WIDTH))
    rows[1] *= length
    with pytest.raises(ValueError, match="direction"):
        orthonormal(rows)


def test_one_after_the_other_is_the_joint_span_and_not_the_product():
    a, b = draw(1, WIDTH), draw(1, WIDTH, seed=1)
    joint = matrix(Projection(orthonormal(torch.cat([a, b]))))
    torch.testing.assert_close(matrix(Projection(joined(orthonormal(a), b))), joint, **EXACT)
    first = Projection(orthonormal(a))
    again = first(b)
    product = matrix(first) @ matrix(Projection(orthonormal(again)))
    torch.testing.assert_close(product, joint, **EXACT)
    raw = matrix(first) @ matrix(Projection(orthonormal(b)))
    assert not torch.allclose(raw, raw @ raw, atol=1e-3)
