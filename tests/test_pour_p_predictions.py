"""POUR-P: what becomes of logits, answers and the head, on features that are known exactly."""

import pytest
import torch
from toys import EXACT, WIDTH, ask, cut, draw, frame, learnt, matrix, one_hot, rng, toy

from core.metrics.outputs import predicted
from core.unlearners.pour_p import PourP


@pytest.fixture(params=[False, True], ids=["without bias", "with bias"])
def bias(request):
    return draw(10, seed=5) if request.param else torch.zeros(10).double()


def test_each_logit_moves_by_its_share_of_the_forgotten_one(bias):
    w, z = draw(10, WIDTH), draw(30, WIDTH, seed=1)
    model = toy(draw(10, WIDTH, seed=2), w, bias)
    done = ask(PourP(logit="keep", centring="off"), model, 3).model
    s, share = z @ w[3], w @ w[3] / w[3].square().sum()
    moved = model.logits(z) - s[:, None] * share
    torch.testing.assert_close(done.logits(cut(done)(z)), moved, **EXACT)
    torch.testing.assert_close(moved[:, 3], bias[3].expand(30), **EXACT)


def test_on_a_simplex_head_it_is_no_more_than_masking(bias):
    z = draw(200, WIDTH, seed=1)
    model = toy(frame(10), 2 * frame(10), bias)
    done = ask(PourP(), model, 3).model
    hidden = model.logits(z).index_fill(1, torch.tensor([3]), -torch.inf)
    p, q = done.logits(cut(done)(z)).softmax(1), hidden.softmax(1)
    torch.testing.assert_close(p, q, **EXACT)
    assert not p[:, 3].any()
    y = torch.randint(4, 10, (200,), generator=rng())
    right = model.logits(z).argmax(1) == y
    assert (p.argmax(1) == y)[right].all()  # no retained image that was right becomes wrong


def test_on_another_head_it_is_more_than_masking():
    w, z = draw(10, WIDTH), draw(200, WIDTH, seed=1)
    done = ask(PourP(centring="off"), toy(frame(10), w), 3).model
    hidden = (z @ w.T).index_fill(1, torch.tensor([3]), -torch.inf)
    assert (done.logits(cut(done)(z)).softmax(1) - hidden.softmax(1)).abs().max() > 0.01


@pytest.mark.parametrize(("policy", "answers"), [("keep", 10), ("zero", 10), ("mask", 9)])
def test_a_collapsed_forgotten_class_is_answered_uniformly(policy, answers):
    done = ask(PourP(logit=policy), toy(5 * frame(10), frame(10)), 3).model
    logits = done(one_hot(10).float().x[12:16])
    p = logits.softmax(1)
    expected = torch.full_like(p, 1 / answers)  # float64
    if policy == "mask":
        expected[:, 3] = 0
    torch.testing.assert_close(p, expected, **EXACT)
    assert (predicted(logits) == -1).all()  # a tie, and not class 0


def test_with_a_bias_the_bias_alone_answers_for_a_collapsed_forgotten_class():
    b = draw(10, seed=5)
    done = ask(PourP(logit="keep"), toy(5 * frame(10), frame(10), b), 3).model
    p = done(one_hot(10).float().x[12:16]).softmax(1)
    torch.testing.assert_close(p, b.softmax(0).expand(4, 10), **EXACT)


def test_a_kept_logit_beats_every_class_that_an_image_is_not_of():
    done = ask(PourP(logit="keep"), toy(frame(10), frame(10)), 3).model
    logits = done(one_hot(10, 1).float().x)
    own, rest = 1 - 1 / 81, -1 / 9 - 1 / 81
    expected = torch.full((10, 10), rest, dtype=torch.float64).fill_diagonal_(own)
    expected[:, 3] = expected[3] = 0
    torch.testing.assert_close(logits, expected, **EXACT)


def test_projected_features_and_a_projected_head_give_the_same_logits(bias):
    w, z = draw(10, WIDTH), draw(30, WIDTH, seed=1)
    done = ask(PourP(logit="keep"), toy(frame(10), w, bias), 3, 5).model
    head = cut(done)(w)
    torch.testing.assert_close(done.logits(cut(done)(z)), z @ head.T + bias, **EXACT)


@pytest.mark.parametrize("policy", ["mask", "zero", "keep"])
def test_the_policy_decides_the_forgotten_logit_and_nothing_else(policy):
    model = toy(frame(10), draw(10, WIDTH), draw(10, seed=5))
    done = ask(PourP(logit=policy), model, 3, 5).model
    gone = torch.zeros(10, dtype=torch.bool)
    gone[[3, 5]] = True
    zeroed = gone & (policy == "zero")
    assert torch.equal(done.masked, gone & (policy == "mask"))
    assert torch.equal(done.head.weight, model.head.weight.masked_fill(zeroed[:, None], 0))
    assert torch.equal(done.head.bias, model.head.bias.masked_fill(zeroed, 0))
    assert torch.equal(learnt(done), learnt(model))


def test_at_strength_zero_the_original_comes_back_bit_for_bit():
    model = toy(frame(10), draw(10, WIDTH))
    for direction in ("head row", "class mean"):
        for policy in ("mask", "zero"):
            method = PourP(strength=0.0, direction=direction, logit=policy)
            done = ask(method, model, 3)
            assert done.model.transform is None
            assert done.read == {"forget": 0, "retain": 0}
            mine, theirs = done.model.state_dict(), model.state_dict()
            assert mine.keys() == theirs.keys()
            assert all(torch.equal(mine[name], theirs[name]) for name in mine)


def test_asking_twice_changes_nothing():
    model = toy(frame(10), draw(10, WIDTH))
    once = ask(PourP(), model, 3).model
    twice = ask(PourP(), once, 3).model
    z = draw(20, WIDTH, seed=1)
    torch.testing.assert_close(cut(twice)(z), cut(once)(z), **EXACT)
    torch.testing.assert_close(cut(twice)(cut(twice)(z)), cut(twice)(z), **EXACT)
    assert len(cut(twice).basis) == 1


@pytest.mark.parametrize("centring", ["auto", "on", "off"])
@pytest.mark.parametrize("direction", ["head row", "class mean"])
def test_one_request_after_another_equals_both_at_once(direction, centring):
    model = toy(draw(10, WIDTH, seed=3), draw(10, WIDTH))
    method = PourP(direction=direction, centring=centring)
    apart = ask(method, ask(method, model, 3).model, 7).model
    both = ask(method, model, 3, 7).model
    torch.testing.assert_close(matrix(cut(apart)), matrix(cut(both)), **EXACT)
    assert torch.equal(apart.masked, both.masked)
