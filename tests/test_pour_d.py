"""POUR-D: a student learns the projection on the forget set, stops in time, and keeps the head."""

import pytest
import torch
import worlds
from torch.nn.functional import normalize
from toys import WIDTH, ask, cut, draw, frame, learnt, toy

from core.geometry.align import cka
from core.models.projection import Projection, orthonormal
from core.unlearners import pour_d
from core.unlearners.pour_d import PourD
from core.unlearners.pour_p import PourP


def first_loss(monkeypatch, method, model, *labels):
    seen = []

    def look(model, loss, **rest):
        seen.append(loss().item())
        return 1

    monkeypatch.setattr(pour_d, "descend", look)
    ask(method, model, *labels)
    return seen[0]


def test_the_first_loss_is_what_the_projection_takes_out(monkeypatch):
    z, w = draw(10, WIDTH, seed=3), draw(10, WIDTH)
    found = first_loss(monkeypatch, PourD(centring="off"), toy(z, w), 3)
    assert found == pytest.approx(float(normalize(w[3:4]) @ z[3]) ** 2, abs=1e-12)
    basis = orthonormal(w[[3, 7]])
    found = first_loss(monkeypatch, PourD(centring="off"), toy(z, w), 3, 7)
    assert found == pytest.approx(float((z[[3, 7]] @ basis.T).square().sum(1).mean()), abs=1e-12)


def test_nothing_moves_where_the_forget_set_has_nothing_along_the_direction():
    z, w = draw(10, WIDTH, seed=3), draw(10, WIDTH)
    z[3] -= w[3] * (w[3] @ z[3]) / w[3].square().sum()
    model = toy(z, w)
    method = PourD(centring="off", lr=0.05, steps=40)
    done = ask(method, model, 3).model
    moved = (learnt(done) - z).abs().max()
    assert moved < 1e-12  # the rounding of z[3], times the step size
    other = ask(method, toy(draw(10, WIDTH, seed=3), w), 3).model
    assert (learnt(other) - draw(10, WIDTH, seed=3)).abs().max() > 1e-2


def test_a_linear_student_learns_the_projection_on_the_forget_set_and_nothing_elsewhere():
    z, w = draw(10, WIDTH, seed=3), draw(10, WIDTH)
    # It ends where the loss is 1e-12 of the first one, so where the error is about 1e-6 of it.
    method = PourD(centring="off", lr=0.05, steps=5000, clip=100.0)
    done = ask(method, toy(z, w), 3, 7).model
    expected = z.clone()
    project = Projection(orthonormal(w[[3, 7]]))
    expected[[3, 7]] = project(z[[3, 7]])
    torch.testing.assert_close(learnt(done), expected, atol=1e-5, rtol=0)


@pytest.fixture(scope="module")
def taught():
    original = worlds.original()
    return original, PourD()(original, worlds.parts(), worlds.target())


def test_the_head_and_the_running_statistics_stay(taught):
    original, done = taught
    old, new = original.state_dict(), done.model.state_dict()
    assert old.keys() == new.keys()
    kept = [n for n in old if n.startswith("head") or "running" in n or n == "masked"]
    assert all(torch.equal(old[n], new[n]) for n in kept)
    assert not torch.equal(old["body.stage3.conv2.weight"], new["body.stage3.conv2.weight"])


def test_the_student_carries_no_transform_and_reads_no_retained_image(taught):
    _, done = taught
    assert done.model.transform is None
    assert done.read["retain"] == 0
    assert done.read["forget"] == len(worlds.parts().forget)


def test_the_class_is_unlearnt_and_the_others_are_kept(taught):
    original, done = taught
    sets = worlds.parts()
    assert worlds.accuracy(original, sets.forget) > 0.9
    assert worlds.accuracy(done.model, sets.forget) <= 0.02
    before, after = (worlds.accuracy(m, sets.test_retain) for m in (original, done.model))
    assert after > before - 0.05


def test_the_student_has_the_features_that_it_was_to_have(taught):
    original, done = taught
    x = worlds.parts().forget.float().x
    project = ask_projection(original)
    with torch.no_grad():
        student, wanted = done.model.features(x), project(original.features(x))
    assert cka(student, wanted) > 0.9
    assert (student - wanted).square().sum() < 0.2 * (original.features(x) - wanted).square().sum()


def ask_projection(original):
    return cut(PourP()(original, worlds.parts(), worlds.target()).model)


def test_it_stops_once_the_class_is_gone_and_the_loss_is_flat():
    # A bias for another class, for without one the features' origin is a tie of all logits.
    model = toy(5 * frame(10), frame(10), torch.eye(10).double()[0])
    steps = []

    def on_step(done, total):
        steps.append((done, total))

    done = ask(PourD(lr=0.05, steps=5000), model, 3, on_step=on_step)
    last, total = steps[-1]
    assert last < 1000
    assert total == 5000
    assert done.note == f"Stopped after {last} of 5000 steps."


def test_it_goes_on_while_the_class_is_still_named():
    bias = torch.eye(10).double()[3]  # the forgotten class wins wherever the features say nothing
    done = ask(PourD(lr=0.05, steps=300), toy(5 * frame(10), frame(10), bias), 3)
    assert not done.note


def test_it_goes_on_while_the_loss_still_falls():
    model = toy(5 * frame(10), frame(10), 100 * torch.eye(10).double()[0])  # never named at all
    done = ask(PourD(lr=0.002, steps=120, clip=1000.0), model, 3)
    assert not done.note


def test_an_earlier_projection_stays_in_the_student():
    model = ask(PourP(), toy(draw(10, WIDTH, seed=3), draw(10, WIDTH)), 7).model
    done = ask(PourD(), model, 3).model
    assert torch.equal(cut(done).basis, cut(model).basis)
    assert done.masked.tolist() == model.masked.tolist()
