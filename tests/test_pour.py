"""POUR does what its algebra says, on heads and features that are known exactly."""

import pytest
import torch
import worlds
from torch import nn
from torch.nn.functional import normalize

from core.data.examples import Examples
from core.data.split import Split
from core.data.targets import ForgetClasses, TargetError
from core.geometry.align import cka
from core.geometry.etf import simplex_etf
from core.metrics.outputs import predicted
from core.models.classifier import Classifier, Transform
from core.models.projection import Projection, joined, orthonormal
from core.unlearners import pour_d
from core.unlearners.pour_d import PourD
from core.unlearners.pour_p import PourP

EXACT = {"atol": 1e-12, "rtol": 0}  # float64, some hundred roundings
WIDTH = 16


def rng(seed=0):
    return torch.Generator().manual_seed(seed)


def draw(*shape, seed=0):
    return torch.randn(*shape, dtype=torch.float64, generator=rng(seed))


def frame(classes, width=WIDTH):
    return simplex_etf(classes, width, rng())


def toy(features, head, bias=None):
    """A float64 model on one-hot images: class c has the features `features[c]` exactly."""
    classes, width = features.shape
    linear = nn.Linear(classes, width, bias=False).double()
    moments = torch.zeros(1), torch.ones(1)
    body = {"flat": nn.Flatten(), "linear": linear}
    model = Classifier(body, width, len(head), *moments).double().eval()
    with torch.no_grad():
        linear.weight.copy_(features.T)
        model.head.weight.copy_(head)
        model.head.bias.zero_() if bias is None else model.head.bias.copy_(bias)
    return model


def one_hot(classes, each=4):
    """Split of one-hot images; the last row of a class's images is its test image."""
    y = torch.arange(classes).repeat_interleave(each)
    x = (255 * torch.eye(classes)[y]).to(torch.uint8).view(len(y), 1, 1, classes)
    return Examples(x, y, torch.arange(len(y)))


def goal(*labels):
    return ForgetClasses(labels, tuple(f"class {label}" for label in labels))


def parts(examples, *labels):
    gone, none = torch.isin(examples.y, torch.tensor(labels)), examples[:0]
    return Split(examples[gone], examples[~gone], none, none, none)


def ask(method, model, *labels, **rest):
    classes = model.body["linear"].in_features
    return method(model, parts(one_hot(classes), *labels), goal(*labels), **rest)


def cut(model):
    """The projection that the model carries."""
    assert isinstance(model.transform, Projection)
    return model.transform


def learnt(model):
    """What the toy's body gives for each class (k d)."""
    return model.state_dict()["body.linear.weight"].T


def matrix(projection):
    return projection(torch.eye(projection.basis.shape[1], dtype=torch.float64))


# ---- the projection


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


# ---- POUR-P: what becomes of the predictions


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


# ---- POUR-P: directions


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


# ---- POUR-P: refusals


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


# ---- POUR-D


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
