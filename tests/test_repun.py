"""Representation unlearning: the map starts as the identity and ends where its formula says."""

from functools import cache

import pytest
import torch
import worlds
from torch import nn
from toys import EXACT, ask, draw, rng, toy

from core import weights
from core.data.targets import TargetError
from core.models.classifier import Transform
from core.models.recode import Recode
from core.models.resnet_mini import ResNetMini
from core.unlearners.compression import noisy, pull
from core.unlearners.repun import RepUn
from core.unlearners.repun_zero_shot import RepUnZeroShot

K, D = 10, 4
GONE = (3, 7)
KEPT = [c for c in range(K) if c not in GONE]
LONG = {"epochs": 600, "lr": 0.03}
DROP = {"standard": 0.06, "zero shot": 0.2}
"""Retained accuracy it may cost; after six epochs a head row says little of its class."""
METHODS = {"standard": RepUn, "zero shot": RepUnZeroShot}


def small():
    """A toy of ten classes in four dimensions, so that its closed form has a matrix to invert.

    Its sets are smaller than a batch: nothing is left to chance.
    """
    return toy(draw(K, D, seed=3), draw(K, D, seed=4))


def body(model):
    return model.state_dict()["body.linear.weight"].T


def mapping(done):
    """Weight and bias of the linear map side by side (d d+1)."""
    state = learnt_map(done.model).state_dict()
    return torch.cat([state["layers.0.weight"], state["layers.0.bias"][:, None]], 1)


def learnt_map(model):
    """The map that the model carries."""
    assert isinstance(model.transform, Recode)
    return model.transform


def closed_form(kept, forgotten, points, beta, a):
    """The minimum of a E|f(z) - z|^2 over `kept` + beta E|f(z) - mean(points)|^2 (d d+1)."""

    def long(z):
        return torch.cat([z, torch.ones_like(z[:, :1])], 1)

    r, f, target = long(kept), long(forgotten), points.mean(0)
    left = a * kept.T @ r / len(r) + beta * torch.outer(target, f.mean(0))
    right = a * r.T @ r / len(r) + beta * f.T @ f / len(f)
    return torch.linalg.solve(right, left, left=False)


@cache
def taught(name):
    """With more passes than by default: a pass over this forget set is one step."""
    original = worlds.original()
    return original, METHODS[name](epochs=500)(original, worlds.parts(), worlds.target())


@pytest.fixture(params=METHODS)
def name(request):
    return request.param


# ---- exact


def test_a_linear_map_starts_as_the_identity_to_the_bit():
    z = torch.randn(500, 64, generator=rng())
    assert torch.equal(Recode([64, 64])(z), z)
    assert not torch.equal(Recode([64, 32, 64])(z), z)


def test_without_a_weight_on_forgetting_nothing_moves(name):
    original = worlds.original()
    done = METHODS[name](beta=0.0, epochs=5)(original, worlds.parts(), worlds.target())
    forget = worlds.parts().forget
    assert torch.equal(done.model.transform.layers[0].weight, torch.eye(64))
    assert torch.equal(worlds.logits(done.model, forget), worlds.logits(original, forget))


@pytest.mark.parametrize(("per", "a"), [("feature", 1 / D), ("vector", 1.0)])
@pytest.mark.parametrize("beta", [0.01, 1.0])
def test_the_linear_map_reaches_its_closed_form(per, a, beta):
    model = small()
    done = ask(RepUn(per=per, beta=beta, **LONG), model, *GONE)
    z = body(model)
    expected = closed_form(z[KEPT], z[list(GONE)], z, beta, a)
    assert (mapping(done) - expected).norm() < 1e-2 * expected.norm()


@pytest.mark.parametrize("beta", [0.01, 1.0])
def test_the_zero_shot_map_reaches_its_closed_form(beta):
    model = small()
    done = ask(RepUnZeroShot(beta=beta, **LONG), model, *GONE)
    heads = model.head.weight.detach()
    expected = closed_form(heads[KEPT], body(model)[list(GONE)], heads, beta, 1.0)
    assert (mapping(done) - expected).norm() < 1e-2 * expected.norm()


def test_the_closed_form_runs_from_the_identity_to_the_mean():
    """The oracle of the tests above, at both ends."""
    z = draw(K, D, seed=3)
    gone = z[list(GONE)]
    none = closed_form(z[KEPT], gone, z, 1e-12, 1.0)
    torch.testing.assert_close(none, torch.eye(D, D + 1).double(), atol=1e-9, rtol=0)
    all_of_it = closed_form(z[KEPT], gone, z, 1e9, 1.0)
    codes = gone @ all_of_it[:, :D].T + all_of_it[:, D]
    torch.testing.assert_close(codes, z.mean(0).expand(2, D), atol=1e-6, rtol=0)


def test_the_heavier_forgetting_weighs_the_nearer_the_codes_come_to_the_mean():
    model = small()
    z, away, error = body(model), [], []
    for beta in (1e-3, 0.1, 10.0, 1e4):
        f = learnt_map(ask(RepUn(beta=beta, epochs=300, lr=0.05), model, *GONE).model)
        with torch.no_grad():
            away.append(float((f(z[list(GONE)]) - z.mean(0)).norm(dim=1).mean()))
            error.append(float((f(z[KEPT]) - z[KEPT]).norm(dim=1).mean()))
    assert away == sorted(away, reverse=True)
    assert error == sorted(error)
    assert away[-1] < 0.02


@pytest.mark.parametrize("shape", [(7, 5), (3, 7, 5)])
def test_the_pull_is_the_mean_over_all_pairs(shape):
    codes, points = draw(*shape), draw(11, 5, seed=1)
    pairs = (codes[..., None, :] - points).square().sum(-1).mean()
    torch.testing.assert_close(pull(codes, points), pairs, **EXACT)


def test_noise_is_drawn_anew_for_each_sample_and_not_at_all_at_zero():
    z = draw(200, 5)
    assert torch.equal(noisy(z, 0.0, 3, rng()), z[None])
    drawn = noisy(z, 0.5, 40, rng()) - z
    assert drawn.shape == (40, 200, 5)
    assert float(drawn.std()) == pytest.approx(0.5, abs=0.01)  # 5 standard errors
    assert not torch.equal(drawn[0], drawn[1])


# ---- what stays and what is read


def test_body_and_head_stay_to_the_bit(name):
    original, done = taught(name)
    old, new = original.state_dict(), done.model.state_dict()
    assert all(torch.equal(old[n], new[n]) for n in old)
    assert {n for n in new if n not in old} == {
        f"transform.layers.0.{p}" for p in ("weight", "bias")
    }


def test_zero_shot_reads_no_retained_image():
    assert taught("zero shot")[1].read == {"forget": worlds.TRAIN, "retain": 0}
    assert taught("standard")[1].read["retain"] == len(worlds.parts().retain)


def test_zero_shot_holds_every_row_where_single_images_are_forgotten():
    """With all rows held and none of the images' pull, the rows come back as they were."""
    done = RepUnZeroShot(beta=0.0, epochs=3)(
        worlds.original(), worlds.parts("random:20"), worlds.target("random:20")
    )
    rows = done.model.head.weight
    torch.testing.assert_close(learnt_map(done.model)(rows), rows)


def test_stretched_rows_are_as_long_as_the_features(monkeypatch):
    seen = []
    monkeypatch.setattr(
        "core.unlearners.repun_zero_shot.pull", lambda z, w: seen.append(w) or pull(z, w)
    )
    model = small()
    ask(RepUnZeroShot(scale="match", epochs=1), model, *GONE)
    long = body(model)[list(GONE)].norm(dim=1).mean()
    torch.testing.assert_close(seen[0].norm(dim=1).mean(), long, **EXACT)


def test_a_model_with_a_transform_is_refused(name):
    model = small()
    model.transform = Transform()
    with pytest.raises(TargetError, match="already has a transform"):
        ask(METHODS[name](), model, 3)


@pytest.mark.parametrize("widths", [[64, 64], [64, 32, 64], [64, 32, 16, 64]])
def test_a_map_is_rebuilt_from_its_tensors_and_draws_nothing(widths, tmp_path):
    model = worlds.original()
    model.transform = Recode(widths)
    weights.save(tmp_path, model, {})
    state = torch.get_rng_state()
    again, _ = weights.load(tmp_path / "weights", worlds.data(), ResNetMini())
    assert torch.equal(torch.get_rng_state(), state)
    old, new = model.state_dict(), again.state_dict()
    assert old.keys() == new.keys()
    assert all(torch.equal(old[n], new[n]) for n in old)
    z = torch.randn(5, 64, generator=rng())
    assert torch.equal(model.transform(z), again.behind(z)[0]["transform"])


def test_a_map_of_a_double_model_is_double():
    made = Recode([5, 5]).double()
    again = Recode.blank(made.state_dict())
    assert isinstance(again.layers[0], nn.Linear)
    assert again.layers[0].weight.dtype == torch.float64


# ---- behaviour


def test_the_class_is_unlearnt_and_the_others_are_kept(name):
    original, done = taught(name)
    sets = worlds.parts()
    assert worlds.accuracy(original, sets.test_forget) > 0.9
    assert worlds.accuracy(done.model, sets.forget) <= 0.05
    assert worlds.accuracy(done.model, sets.test_forget) <= 0.05
    before, after = (worlds.accuracy(m, sets.test_retain) for m in (original, done.model))
    assert after >= before - DROP[name]


def test_the_forgotten_codes_draw_together(name):
    original, done = taught(name)
    x = worlds.parts().forget.float().x
    with torch.no_grad():
        before, after = (m.features(x).var(0).sum() for m in (original, done.model))
    assert after < 0.5 * before


def test_hidden_layers_learn_what_is_retained():
    method = RepUn(hidden=1, width=128, epochs=300)
    done = method(worlds.original(), worlds.parts(), worlds.target())
    sets = worlds.parts()
    assert worlds.accuracy(done.model, sets.forget) <= 0.1
    assert worlds.accuracy(done.model, sets.test_retain) > 0.7
