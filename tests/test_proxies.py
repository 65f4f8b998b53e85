"""Proxies: the published Gaussian world, and a network that learns what a proxy says."""

from functools import cache

import pytest
import torch
import worlds
from toys import EXACT, rng

from core.losses import kl
from core.unlearners import proxy_goal
from core.unlearners.proxies import Proxies
from core.unlearners.proxy_features import read
from core.unlearners.proxy_fit import Gaussians, lifted
from core.unlearners.proxy_goal import FITS, aim, distil
from core.unlearners.proxy_signal import dirac, largest_step, signal, tilted

CLOSE = {"atol": 1e-10, "rtol": 0}


def divergence(log_p, log_q):
    return (log_p.exp() * (log_p - log_q)).sum(1)


# ---- the Gaussian world: four Gaussians, two classes of two, one Gaussian to be forgotten

CLASS_OF = torch.tensor([0, 0, 1, 1])
TABLE = {
    "original": (1.158, 4.525, 0.017),
    "lda": (0.260, 0.954, 0.025),
    "dir_2c": (0.113, 0.388, 0.020),
    "lda_2c": (0.040, 0.149, 0.003),
}
"""KL(retained posterior || target) over all, forgotten and retained rows, as published in the
specification; its random draw is not, so the world below is one that resembles it."""
SEED = 724


@cache
def world(n=20_000, wide=8):
    g = rng(SEED)
    means = 1.2 * torch.randn(4, wide, generator=g, dtype=torch.float64)
    part = torch.randint(0, 4, (n,), generator=g)
    return means, part, means[part] + torch.randn(n, wide, generator=g, dtype=torch.float64)


def posterior(parts):
    """The exact log-posterior of the two classes, made of these Gaussians (n 2)."""
    means, _, x = world()
    density = Gaussians(means, torch.eye(8).double()[None], torch.ones(4)).density(x)
    own = [density[:, [p for p in parts if CLASS_OF[p] == c]].logsumexp(1) for c in (0, 1)]
    return torch.stack(own, 1).log_softmax(1)


@cache
def measured(name):
    _, part, x = world()
    y, gone, log_p = CLASS_OF[part], part == 0, posterior([0, 1, 2, 3])
    if name == "original":
        target = log_p
    elif name == "dir_2c":
        target = dirac(log_p, y, gone).log()
    else:
        fit, shape = FITS[name]
        delta = signal(*fit(x, y, gone, 2, shape))
        target = tilted(log_p, delta, largest_step(log_p, delta, 1.0)).log()
    far = divergence(posterior([1, 2, 3]), target)
    return tuple(float(far[m].mean()) for m in (gone | True, gone, ~gone))


@pytest.mark.parametrize("name", TABLE)
def test_the_published_table_comes_out(name):
    found, printed = measured(name), TABLE[name]
    assert found[:2] == pytest.approx(printed[:2], rel=0.12)
    assert found[2] == pytest.approx(printed[2], abs=0.01)


def test_the_published_order_comes_out():
    found = [measured(name)[1] for name in ("lda_2c", "dir_2c", "lda", "original")]
    assert found == sorted(found)
    assert measured("lda_2c")[0] <= 0.05 * measured("original")[0]


def test_the_true_posteriors_as_proxies_leave_no_error():
    log_p, gold = posterior([0, 1, 2, 3]), posterior([1, 2, 3])
    delta = signal(log_p, gold)
    assert largest_step(log_p, delta, 1.0) == 1
    found = tilted(log_p, delta, 1.0)
    torch.testing.assert_close(found, gold.exp(), **CLOSE)


def test_a_random_tenth_leaves_hardly_a_signal():
    _, part, x = world()
    gone = torch.rand(len(x), generator=rng()) < 0.1
    delta = signal(*lifted(x, CLASS_OF[part], gone, 2, "pooled"))
    assert delta.abs().mean() < 0.02


# ---- the method


def ask(text="class:two", **settings):
    return Proxies(**settings)(worlds.original(), worlds.parts(text), worlds.target(text))


def same(a, b):
    old, new = a.state_dict(), b.state_dict()
    return all(torch.equal(old[n], new[n]) for n in old)


@pytest.mark.parametrize("tap", ["middle", "penultimate"])
def test_rows_are_standardised_and_answered_by_the_network(tap):
    split, model = worlds.parts(), worlds.original()
    seen = read(model, split, tap, 32)
    assert seen.z.shape == (len(split.forget) + len(split.retain), 32)
    torch.testing.assert_close(seen.z.mean(0), torch.zeros(32).double(), **EXACT)
    torch.testing.assert_close(
        seen.z.var(0, correction=0), torch.ones(32).double(), atol=1e-4, rtol=0
    )
    assert seen.gone.sum() == len(split.forget)
    said = worlds.logits(model, split.forget).double().log_softmax(1)
    torch.testing.assert_close(seen.log_p[seen.gone], said, atol=1e-4, rtol=0)


def test_what_is_distilled_weighs_each_set_by_its_size(monkeypatch):
    seen, losses = read(worlds.original(), worlds.parts(), "middle", 64), []
    goal, _ = aim(seen, "dir_2c", "diagonal", 1.0)
    assert goal is not None
    monkeypatch.setattr(proxy_goal, "adapt", lambda m, loss, **_: losses.append(loss().item()))
    settings = {"lr": 0.1, "epochs": 1, "batch": 1024, "rng": rng(), "on_step": print}
    for both in (True, False):
        distil(worlds.original(), worlds.parts(), goal.float(), both=both, **settings)
    per_row = (goal.xlogy(goal) - goal * seen.log_p).sum(1)
    expected = [per_row.mean(), per_row[seen.gone].mean()]
    assert losses == pytest.approx([float(v) for v in expected], rel=1e-3)  # float32 logits


def test_distilling_the_networks_own_answer_leaves_it_as_it_was():
    model, split = worlds.original(), worlds.parts()
    goal = read(model, split, "middle", 64).log_p.exp().float()
    rest = {"lr": 0.001, "epochs": 8, "batch": 64, "rng": rng(), "on_step": lambda *_: None}
    distil(model, split, goal, both=True, **rest)
    assert same(worlds.original(), model)
    assert kl(goal[: len(split.forget)], worlds.logits(model, split.forget)) < 1e-6
    assert kl(goal[len(split.forget) :], worlds.logits(model, split.retain)) < 1e-6


def test_a_proxy_that_is_not_admissible_leaves_every_weight_and_says_so(monkeypatch):
    def worse(z, y, gone, k, shape):
        initial, retained = lifted(z, y, gone, k, shape)
        return retained.clamp_min(-50), initial

    monkeypatch.setitem(proxy_goal.FITS, "lda_2c", (worse, "pooled"))
    done = ask()
    assert same(worlds.original(), done.model)
    assert done.note.startswith("Not admissible")
    monkeypatch.undo()
    assert not same(worlds.original(), ask(epochs=1).model)


@pytest.mark.parametrize(
    "settings",
    [
        {"covariance": "full", "proxy": "qda"},
        {"distil": "forget only"},
        {"tap": "penultimate"},
        *({"proxy": p} for p in (*FITS, "dir_2c")),
    ],
    ids=str,
)
def test_the_class_is_unlearnt_and_the_others_are_kept(settings):
    """With few features, for 400 rows make a proxy of 256 too sure of itself."""
    model, sets = ask(epochs=16, dims=16, **settings).model, worlds.parts()
    assert worlds.accuracy(model, sets.forget) <= 0.05
    assert worlds.accuracy(model, sets.test_forget) <= 0.1
    before = worlds.accuracy(worlds.original(), sets.test_retain)
    assert worlds.accuracy(model, sets.test_retain) >= before - 0.06
