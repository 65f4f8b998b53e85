"""The mathematics of proxies: closed forms of the fits, the certificate, and DIR-2C."""

import pytest
import torch
from torch.nn.functional import one_hot
from toys import EXACT, draw

from core.unlearners.proxy_fit import Gaussians, lifted, mixed, naive, raw, ridged
from core.unlearners.proxy_signal import (
    ABSENT,
    advantage,
    dirac,
    excess,
    largest_step,
    signal,
    tilted,
)

N, K, D = 400, 3, 5
CLOSE = {"atol": 1e-10, "rtol": 0}
SHAPES = [(naive, "pooled"), (naive, "diagonal"), (naive, "full"), (mixed, "pooled")]
SHAPES += [(mixed, "diagonal"), (mixed, "full"), (lifted, "pooled")]


def divergence(log_p, log_q):
    return (log_p.exp() * (log_p - log_q)).sum(1)


def answers(n=N, k=K, seed=0):
    return (2 * draw(n, k, seed=seed)).log_softmax(1)


def rows(seed=0):
    """Features about a mean of each class, labels, and a fifth of them to be forgotten."""
    y = torch.arange(N) % K
    z = draw(N, D, seed=seed) + 2 * draw(K, D, seed=seed + 1)[y]
    return z, y, torch.arange(N) < N // 5


def matrix(seed):
    root = draw(D, D, seed=seed)
    return root @ root.T + torch.eye(D)


def given(seed, spread):
    return Gaussians(draw(K, D, seed=seed), spread, 1 + torch.arange(K).double() + seed)


def quadratic(fit, z):
    """x^T S^-1 x - 2 ... for each class, written out, with the log-determinant (n k)."""
    spread = fit.spread.expand(K, *fit.spread.shape[1:])
    if spread.shape[1] == 1:
        spread = torch.diag_embed(spread[:, 0])
    away = z[:, None] - fit.means
    far = torch.einsum("nki,kij,nkj->nk", away, torch.linalg.inv(spread), away)
    return far / 2 + torch.linalg.slogdet(spread).logabsdet / 2


def same_but_for_a_constant(a, b):
    torch.testing.assert_close(a - a[:, :1], b - b[:, :1], **CLOSE)


# ---- fits


def test_the_signal_of_lda_is_linear_in_the_features():
    spread, z = matrix(3)[None], draw(50, D, seed=9)
    initial, retained = given(1, spread), given(2, spread)
    delta = signal(*(fit.joint(z).log_softmax(1) for fit in (initial, retained)))
    inverse, a, b = torch.linalg.inv(spread[0]), initial.means, retained.means
    bend = ((b @ inverse * b).sum(1) - (a @ inverse * a).sum(1)) / 2
    prior = (retained.counts / retained.counts.sum()).log()
    prior = prior - (initial.counts / initial.counts.sum()).log()
    same_but_for_a_constant(delta, z @ inverse @ (b - a).T - bend + prior)


@pytest.mark.parametrize("shape", ["full", "diagonal"])
def test_the_signal_of_qda_is_the_difference_of_quadratic_forms(shape):
    z, fits = draw(50, D, seed=9), []
    for seed in (1, 2):
        own = torch.stack([matrix(10 * seed + c) for c in range(K)])
        fits.append(given(seed, own if shape == "full" else draw(K, 1, D, seed=seed).exp()))
    delta = signal(*(fit.joint(z).log_softmax(1) for fit in fits))
    a, b = (quadratic(fit, z) - fit.counts.log() for fit in fits)
    same_but_for_a_constant(delta, a - b)


def test_a_pooled_covariance_divides_by_rows_less_classes_that_are_there():
    z, y, _ = rows()
    fit = raw(z, y, K + 2, "pooled")
    rest = z - torch.stack([z[y == c].mean(0) for c in range(K)])[y]
    torch.testing.assert_close(fit.spread[0], rest.T @ rest / (N - K), **EXACT)
    ridge = ridged(fit, "pooled").spread - fit.spread
    expected = 0.01 * fit.spread[0].diagonal().mean() * torch.eye(D).double()
    torch.testing.assert_close(ridge[0], expected, **EXACT)


def test_both_halves_of_the_cells_add_up_to_the_initial_proxy():
    z, y, gone = rows()
    initial, retained = lifted(z, y, gone, K, "pooled")
    cells = ridged(raw(z, y + K * gone, 2 * K, "pooled"), "pooled").joint(z).softmax(1)
    torch.testing.assert_close(initial.exp(), cells[:, :K] + cells[:, K:], **CLOSE)
    ones = torch.ones(N).double()
    for log_p in (initial, retained):
        torch.testing.assert_close(log_p.exp().sum(1), ones, **CLOSE)


def test_a_mixture_weighs_both_gaussians_by_their_share_of_the_class():
    z, y, gone = rows()
    kept, lost = (ridged(raw(z[m], y[m], K, "pooled"), "pooled") for m in (~gone, gone))
    total = kept.counts + lost.counts
    within = sum(f.density(z).exp() * f.counts / total for f in (kept, lost))
    expected = (within * total).log().log_softmax(1)
    torch.testing.assert_close(mixed(z, y, gone, K, "pooled")[0], expected, **CLOSE)


@pytest.mark.parametrize(("fit", "shape"), SHAPES)
def test_empty_cells_and_lonely_rows_leave_everything_finite(fit, shape):
    z, y, _ = rows()
    for gone in (y == 1, torch.arange(N) == 0, (y == 1) | (torch.arange(N) == 0)):
        delta = signal(*fit(z, y, gone, K + 1, shape))  # and a class that no row has
        assert torch.isfinite(delta).all()
        assert torch.equal(delta[:, K], torch.zeros(N).double())
        assert ((y == 1) & ~gone).any() or torch.equal(
            delta[:, 1], torch.full((N,), ABSENT).double()
        )


# ---- signal, step, certificate


def test_h_starts_at_zero_is_convex_and_begins_as_the_divergences_say():
    log_p, (initial, retained) = answers(), (answers(seed=1), answers(seed=2))
    delta = signal(initial, retained)
    h = torch.tensor([excess(log_p, delta, s) for s in torch.linspace(0, 1, 101).tolist()])
    assert abs(h[0]) < 1e-12
    assert (h[2:] - 2 * h[1:-1] + h[:-2]).min() > -1e-9
    slope = (excess(log_p, delta, 1e-5) - excess(log_p, delta, -1e-5)) / 2e-5
    expected = float((divergence(log_p, initial) - divergence(log_p, retained)).mean())
    assert slope == pytest.approx(expected, abs=1e-6)


def test_the_gain_is_exactly_step_times_advantage_less_h():
    log_p, gold = answers(), answers(seed=3)
    delta = signal(answers(seed=1), answers(seed=2))
    gain = float((gold.exp() * delta).sum(1).mean())
    for step in (0.1, 0.5, 1.0):
        after = float(divergence(gold, tilted(log_p, delta, step).log()).mean())
        before = float(divergence(gold, log_p).mean())
        assert after == pytest.approx(before - step * gain + excess(log_p, delta, step), abs=1e-10)


def noisy_pair():
    """A network, a proxy a little off it, and where that proxy says to go."""
    log_p = answers(2000)
    initial = (log_p + 0.7 * draw(2000, K, seed=1)).log_softmax(1)
    return log_p, signal(initial, (initial + draw(2000, K, seed=2)).log_softmax(1))


def test_up_to_the_largest_step_the_certificate_holds():
    log_p, delta = noisy_pair()
    top = largest_step(log_p, delta, 1.0)
    assert 0 < top < 1
    assert excess(log_p, delta, top) <= 0 < excess(log_p, delta, top + 2e-4)
    gold = tilted(log_p, delta, 2.0).log()
    gain = float((gold.exp() * delta).sum(1).mean())
    assert gain > 0
    before = float(divergence(gold, log_p).mean())
    for step in torch.linspace(0, top, 20).tolist():
        after = float(divergence(gold, tilted(log_p, delta, step).log()).mean())
        assert after <= before - step * gain + 1e-12


def test_a_perfect_proxy_takes_the_whole_step_to_the_retained_posterior():
    log_p, retained = answers(), answers(seed=2)
    delta = signal(log_p, retained)
    assert excess(log_p, delta, 1.0) == pytest.approx(0, abs=1e-12)
    assert largest_step(log_p, delta, 1.0) == 1
    torch.testing.assert_close(tilted(log_p, delta, 1.0), retained.exp(), **CLOSE)


def test_no_signal_or_one_that_leads_away_takes_no_step():
    log_p, delta = noisy_pair()
    assert largest_step(log_p, torch.zeros_like(delta), 1.0) == 0
    assert largest_step(log_p, -delta, 1.0) == 0 < excess(log_p, -delta, 1e-4)


def test_the_advantage_is_read_at_the_labels():
    delta, y = draw(N, K), torch.arange(N) % K
    expected = float((delta * one_hot(y, K)).sum(1).mean())
    assert advantage(delta, y) == pytest.approx(expected, abs=1e-12)


# ---- DIR-2C


def less(log_p, barred):
    """Probabilities without the classes that `barred` (n k, bool) marks."""
    return log_p.masked_fill(barred, -torch.inf).softmax(1)


@pytest.mark.parametrize("labels", [[1], [1, 2]])
def test_of_whole_classes_dir_2c_leaves_the_answer_without_them(labels):
    log_p, y = answers(k=5), torch.arange(N) % 5
    barred = torch.isin(torch.arange(5), torch.tensor(labels)).expand(N, 5)
    found = dirac(log_p, y, torch.isin(y, torch.tensor(labels)))
    torch.testing.assert_close(found, less(log_p, barred), **CLOSE)


def test_of_random_images_dir_2c_takes_the_forgotten_share_off_their_own_class():
    log_p, y = answers(), torch.arange(N) % K
    gone = torch.arange(N) // K % 4 == 0
    y, gone, log_p = y[: N - 4], gone[: N - 4], log_p[: N - 4]  # a quarter of each class, exactly
    found, p = dirac(log_p, y, gone), log_p.exp()
    expected = 0.75 * p + 0.25 * less(log_p, one_hot(y, K).bool())
    torch.testing.assert_close(found[gone], expected[gone], **CLOSE)
    torch.testing.assert_close(found[~gone], p[~gone], **CLOSE)
