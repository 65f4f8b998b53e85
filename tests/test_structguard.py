"""Structguard: its anchors, each term of its loss, and the forget set that it misclassifies."""

import itertools
from functools import cache

import pytest
import torch
import worlds
from torch.nn.functional import cosine_similarity, cross_entropy, normalize
from toys import EXACT, draw, rng

from core.data.examples import Batch
from core.models.recode import Recode
from core.optim import fit
from core.unlearners import anchors as module
from core.unlearners.anchors import anchors
from core.unlearners.pgd import proxies
from core.unlearners.structguard import Structguard
from core.unlearners.structure import (
    Guard,
    Terms,
    drift,
    elastic_net,
    importance,
    log_odds,
    misalignment,
    near_identity,
    structure,
)


@cache
def trained():
    """An MLP on the toy images: a step takes it about a millisecond."""
    model = worlds.blank(0, "mlp")
    fit(model, worlds.data().train, worlds.TRAINING, rng())
    return model


def others(target="random:16", count=50, eps=0.7):
    forget = worlds.parts(target).forget
    goal = worlds.target(target)
    return proxies(trained(), forget, goal, rng(), count=count, eps=eps, steps=5)


def guarded(chance=0.1):
    """A guard of the toy, its projector in place, and one batch of each kind."""
    model = worlds.copy.deepcopy(trained())
    torch.manual_seed(0)
    model.transform = near_identity(Recode([64, 64, 64]), chance)
    fixed, _ = anchors("random", (), 6, 64)
    guard = Guard(model, trained(), others(), fixed, 16)
    return guard, worlds.parts("random:16").forget[:8].float(), torch.arange(24)


# ---- terms


def test_structures_are_cosines_and_their_misalignment_is_as_promised():
    fixed = normalize(draw(10, 64))
    before, after = (structure(9 * draw(50, 64, seed=s), fixed) for s in (1, 2))
    assert before.abs().max() <= 1 + 1e-12
    assert 0 < misalignment(before, after) < 2
    torch.testing.assert_close(misalignment(before, -before), torch.tensor(2.0).double(), **EXACT)
    torch.testing.assert_close(misalignment(before, before), torch.zeros(()).double(), **EXACT)
    scale = draw(50, 1, seed=3).exp()
    stretched = structure(scale * 9 * draw(50, 64, seed=2), fixed)
    torch.testing.assert_close(misalignment(before, stretched), misalignment(before, after))


def test_log_odds_are_those_of_the_true_class():
    logits, y = draw(20, 6), torch.arange(20) % 6
    p = logits.softmax(1).gather(1, y[:, None]).squeeze(1)
    torch.testing.assert_close(log_odds(logits, y), (p / (1 - p)).log(), **EXACT)


def test_the_drift_starts_at_zero_without_a_slope():
    guard, f, rows = guarded()
    body = list(guard.model.body.parameters())
    start = guard.terms(f, rows).drift
    assert start == 0
    assert all(not g.any() for g in torch.autograd.grad(start, body))
    with torch.no_grad():
        body[0].add_(0.1)
    expected = 0.005 * guard.heavy[0].sum()
    torch.testing.assert_close(guard.terms(f, rows).drift, expected)
    assert drift([torch.ones(2)], [torch.zeros(2)], [torch.tensor([1.0, 3.0])]) == 2


def test_importance_is_a_mean_over_samples_and_none_at_the_minimum():
    guard, _, _ = guarded()
    assert all((i >= 0).all() for i in guard.heavy)
    assert all(i.any() for i in guard.heavy)
    model, body = guard.model, list(guard.model.body.parameters())
    x = guard.others.x[:12]
    totals = [torch.zeros_like(w) for w in body]
    for part, lies in ((x[:9], guard.before[:9]), (x[9:], guard.before[9:12])):
        codes = model.features(part)
        loss = 1 - cosine_similarity(lies, normalize(codes) @ guard.anchors.T).mean()
        for total, g in zip(totals, torch.autograd.grad(loss, body), strict=True):
            total += len(part) / 12 * g.abs()
    pairs = [(x[:9], guard.before[:9]), (x[9:], guard.before[9:12])]
    torch.testing.assert_close(importance(model, guard.anchors, pairs), totals)
    same, _, _ = guarded(chance=0.0)
    assert max(float(i.max()) for i in same.heavy) < 1e-6 * max(float(i.max()) for i in totals)


def test_the_shares_of_deletion_and_retention_add_up_to_one():
    guard, f, rows = guarded()
    model, y = guard.model, guard.others.y[rows]
    z = trained().features(f.x)
    before, behind = log_odds(model.head(z), f.y), log_odds(model.behind(z)[1], f.y)
    odds = torch.maximum(before, behind)[behind > 0].mean()
    terms = guard.terms(f, rows)
    loss = cross_entropy(model(guard.others.x[rows]), y)
    torch.testing.assert_close(terms.delete, 8 / 32 * odds)
    torch.testing.assert_close(terms.delete / odds + terms.retain / loss, torch.tensor(1.0))
    w = model.head.weight
    expected = 0.99 * w.abs().sum() + 0.005 * (w * w).sum()
    torch.testing.assert_close(terms.elastic, expected)
    torch.testing.assert_close(elastic_net(w), expected)


def test_an_image_that_is_misclassified_is_pushed_no_further():
    guard, f, rows = guarded()
    wrong = Batch(f.x, (guard.model(f.x).argmax(1) + 1) % 6, f.ids)
    terms = guard.terms(wrong, rows)
    assert terms.named == 0
    assert terms.delete == 0


@pytest.mark.parametrize("flags", list(itertools.product([True, False], repeat=3)))
def test_a_term_that_is_switched_off_is_not_in_the_sum(flags):
    parts = torch.tensor([3.0, 5.0, 7.0, 0.11, 13_000.0], dtype=torch.float64)
    on = dict(zip(("align", "regularise", "elastic"), flags, strict=True))
    expected = 3 + 5 + 7 * flags[0] + 100 * 0.11 * flags[1] + 13 * flags[2]
    total = Structguard(strength=100.0, **on).total(Terms(*parts, named=1.0))
    torch.testing.assert_close(total, torch.tensor(expected).double(), **EXACT)


@pytest.mark.parametrize("target", ["random:16", "classes:two,four"])
def test_adversarial_images_stay_near_theirs_and_pass_for_another_class(target):
    made, forget = others(target, count=50, eps=0.5), worlds.parts(target).forget.float()
    assert len(made.x) == len(made.y) == 50
    assert made.x.min() >= 0
    assert made.x.max() <= 1
    row = {int(i): n for n, i in enumerate(forget.ids)}
    rows = torch.tensor([row[int(i)] for i in made.ids])
    assert (made.x - forget.x[rows]).flatten(1).norm(dim=1).max() <= 0.5 + 1e-5
    assert (made.y != forget.y[rows]).all()
    if target.startswith("classes"):
        assert not torch.isin(made.y, forget.y).any()


# ---- behaviour


@pytest.mark.parametrize("k", [3, 16, 64])
def test_no_forgotten_image_is_named_when_it_ends(k):
    sets, goal = worlds.parts(f"random:{k}"), worlds.target(f"random:{k}")
    assert worlds.accuracy(trained(), sets.forget) > 0.9
    done = Structguard(lr=0.3)(trained(), sets, goal)  # no norms: an MLP needs longer steps
    assert worlds.accuracy(done.model, sets.forget) == 0
    assert "0.0% of the forget set is still named." in done.note
    assert worlds.accuracy(done.model, sets.retain) > 0.5


def test_a_run_says_whose_descriptions_it_went_by(monkeypatch):
    toys = {worlds.CLASSES: ("toys", torch.eye(6))}
    monkeypatch.setattr(module, "described", toys.get)
    model = worlds.copy.deepcopy(trained())
    asked = (worlds.parts("random:16"), worlds.target("random:16"))
    assert "random directions" in Structguard(epochs=1, anchors="random")(model, *asked).note
    model.names = worlds.CLASSES
    assert "the classes of toys." in Structguard(epochs=1)(model, *asked).note
