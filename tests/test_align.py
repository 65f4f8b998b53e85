"""CKA and Procrustes: what they ignore, what they see, and when they are undefined."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from core.geometry import align
from core.geometry.align import cka, cka_gram, influence, procrustes

BOTH = pytest.mark.parametrize("debiased", [False, True])


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    rng = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=rng, dtype=torch.float64)


def related(n: int = 60, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Two sets of features that share something (n 6, n 9)."""
    x = normal(n, 6, seed=seed)
    return x, x @ normal(6, 9, seed=seed + 1) + normal(n, 9, seed=seed + 2)


@BOTH
def test_cka_of_features_with_themselves_is_one(debiased):
    x, _ = related()
    assert cka(x, x, debiased=debiased) == pytest.approx(1, abs=1e-12)  # float64 rounding


@BOTH
@given(
    seed=st.integers(0, 99),
    scale=st.floats(0.01, 100) | st.floats(-100, -0.01),
    shift=st.floats(-100, 100),
)
def test_cka_ignores_rotation_scale_and_shift(debiased, seed, scale, shift):
    x, y = related(seed=seed)
    q = torch.linalg.qr(normal(9, 9, seed=seed + 3))[0]
    moved = scale * y @ q + shift
    before, after = cka(x, y, debiased=debiased), cka(x, moved, debiased=debiased)
    assert after == pytest.approx(before, abs=1e-10)  # the specification's bound
    assert cka(moved, x, debiased=debiased) == pytest.approx(after, abs=1e-12)


def test_cka_sees_a_stretch():
    x, y = related()
    assert abs(cka(x, y) - cka(x, y @ torch.diag(torch.arange(1.0, 10).double()))) > 0.01


@BOTH
@pytest.mark.parametrize("weighted", [False, True])
def test_feature_form_equals_gram_form(debiased, weighted):
    x, y = related()
    weights = (
        torch.randint(0, 4, (60,), generator=torch.Generator().manual_seed(0)) if weighted else None
    )
    fast, slow = (f(x, y, weights, debiased=debiased) for f in (cka, cka_gram))
    assert fast == pytest.approx(slow, abs=1e-12)  # float64 rounding


@BOTH
def test_a_weight_counts_as_so_many_equal_rows(debiased):
    x, y = related()
    weights = torch.randint(0, 4, (60,), generator=torch.Generator().manual_seed(1))
    again = [z.repeat_interleave(weights, 0) for z in (x, y)]
    got = cka(x, y, weights, debiased=debiased)
    assert got == pytest.approx(cka(*again, debiased=debiased), abs=1e-12)


def positive() -> tuple[torch.Tensor, torch.Tensor]:
    """Unrelated positive features, as after a ReLU (1000 16 each)."""
    return normal(1000, 16, seed=5).abs() + 1, normal(1000, 16, seed=6).abs() + 1


def test_unrelated_positive_features_are_not_alike():
    x, y = positive()
    uncentred = (x.T @ y).norm() ** 2 / ((x.T @ x).norm() * (y.T @ y).norm())
    assert uncentred > 0.9  # what a CKA without centring would say
    assert cka(x, y) < 0.05  # n = 60 d: the bias is about d/n


def test_leaving_out_the_centring_would_be_seen(monkeypatch):
    monkeypatch.setattr(align, "centred", lambda x, weights=None: x.double())
    assert cka(*positive()) > 0.9
    with pytest.raises(AssertionError):
        test_unrelated_positive_features_are_not_alike()


def test_debiased_cka_of_noise_is_nought_where_the_plain_one_is_high():
    pairs = [(normal(64, 64, seed=s), normal(64, 64, seed=100 + s)) for s in range(20)]
    plain = sum(cka(x, y) for x, y in pairs) / 20
    fair = sum(cka(x, y, debiased=True) for x, y in pairs) / 20
    assert plain > 0.4
    assert abs(fair) < 0.02  # a single one spreads by 0.02, their mean by 0.005


@pytest.mark.parametrize(
    ("x", "why"),
    [
        (torch.ones(20, 3), "features are constant"),
        (torch.full((20, 3), 0.1), "features are constant"),
        (torch.full((20, 3), torch.nan), "features are not finite"),
        (torch.ones(1, 3), "one sample"),
        (torch.ones(0, 3), "no sample"),
    ],
)
def test_cka_says_why_it_is_undefined(x, why):
    with pytest.raises(align.Undefined, match=why):
        cka(x, normal(len(x), 2))


def test_influence_is_the_derivative_by_a_rows_weight():
    x, y = related()
    (value, sway), step = influence(x, y), 1e-5
    assert value == pytest.approx(cka(x, y), abs=1e-12)
    for row in (0, 17, 59):
        ends = [
            torch.ones(60).double().index_fill(0, torch.tensor(row), 1 + s) for s in (-step, step)
        ]
        slope = (cka(x, y, ends[1]) - cka(x, y, ends[0])) / (2 * step)
        assert float(sway[row]) / 60 == pytest.approx(slope, abs=1e-8)  # step squared, and rounding
    assert float(sway.sum()) == pytest.approx(0, abs=1e-9)


@BOTH
def test_influence_predicts_the_spread_over_fresh_samples(debiased):
    worlds = [related(300, seed=s)[0] for s in range(0, 600, 3)]
    mix = normal(6, 9, seed=1000)
    pairs = [(x, x @ mix + x.square() @ mix) for x in worlds]
    values = torch.tensor([cka(x, y, debiased=debiased) for x, y in pairs])
    predicted = influence(*pairs[0], debiased=debiased)[1].std() / 300**0.5
    # 200 worlds know their spread to 5 %, 300 rows theirs to about 10 %.
    assert float(predicted) == pytest.approx(float(values.std()), rel=0.3)


def test_procrustes_finds_the_similarity():
    x = normal(50, 5)
    q = torch.linalg.qr(normal(5, 5, seed=1))[0]
    y = 3 * x @ q + 7
    found = procrustes(x, y)
    torch.testing.assert_close(found.rotation, q, atol=1e-10, rtol=0)
    assert found.scale == pytest.approx(3, abs=1e-10)
    torch.testing.assert_close(found(x), y, atol=1e-9, rtol=0)


def test_procrustes_states_what_it_leaves_unexplained():
    x, y = related()
    found = procrustes(x, y)
    left = (found(x) - y).square().sum() / (y - y.mean(0)).square().sum()
    assert found.residual == pytest.approx(float(left), abs=1e-10)
    assert 0.1 < found.residual < 1
