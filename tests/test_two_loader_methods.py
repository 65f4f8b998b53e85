"""Methods that read both sets: what each does, against its formula, and how well it forgets."""

from functools import cache
from itertools import pairwise
from typing import Any

import pytest
import torch
import worlds
from torch.nn.functional import cross_entropy

from core.data.examples import number
from core.knobs import Value
from core.losses import kl
from core.models.classifier import Classifier
from core.optim import descend, silent
from core.unlearners import UNLEARNERS
from core.unlearners.base import Unlearned
from core.unlearners.fcs import contrast
from core.unlearners.finetune import Finetune
from core.unlearners.gradient_ascent import GradientAscent
from core.unlearners.rewind import closest
from core.unlearners.scrub import Scrub, disobedience, softened
from core.unlearners.two_sets import climb, named, rounds, some, still

# Step sizes of this world: its forget set gives two to three steps a pass, not twenty.
HERE: dict[str, dict[str, Any]] = {
    "neggrad_plus": {"batch": 32, "steps": 80},
    "scrub": {"batch_forget": 16, "msteps": 3, "epochs": 5},
    "fcs": {"lr_forget": 0.02, "lr_contrast": 0.003, "batch": 8, "epochs": 4},
}


@cache
def ran(name: str, text: str = "class:two", **settings: Value) -> Unlearned:
    method = UNLEARNERS[name](**(HERE.get(name, {}) | settings))
    return method(worlds.original(), worlds.parts(text), worlds.target(text))


def on(model: Classifier, name: str) -> float:
    return worlds.accuracy(model, getattr(worlds.parts(), name))


def equal(a: Classifier, b: Classifier) -> bool:
    mine, other = a.state_dict(), b.state_dict()
    return all(torch.equal(mine[n], other[n]) for n in mine)


@pytest.mark.parametrize("name", HERE)
def test_it_forgets_the_class_and_keeps_the_others(name):
    """By 250 unseen images of the rest: 0.1 is four standard errors of a difference."""
    model = ran(name).model
    assert on(model, "forget") <= 0.1
    assert on(model, "test_forget") <= 0.1
    assert on(model, "test_retain") >= on(worlds.original(), "test_retain") - 0.1


# ---- what they share


@pytest.mark.parametrize("n", [1, 2, 8, 9, 10, 17, 23])
@pytest.mark.parametrize("size", [1, 2, 8])
def test_a_pass_has_as_many_batches_as_it_is_said_to_have(n, size):
    examples = number(torch.zeros(n, 1, 2, 2, dtype=torch.uint8), torch.zeros(n), 0)
    assert rounds(examples, size) == len(list(examples.epoch(size, torch.Generator())))


def test_a_climb_raises_the_gain_until_enough_is_forgotten():
    logits, y = torch.eye(4), torch.tensor([0, 1, 3, 2])  # half of them named rightly
    gain = torch.tensor(3.0, requires_grad=True)
    for floor, slope in ((0.4, -1.0), (0.5, 0.0)):
        assert torch.autograd.grad(climb(gain, logits, y, floor), gain)[0] == slope


def test_a_still_pass_is_one_in_eval_mode_and_leaves_the_mode():
    model, f = worlds.original(), worlds.parts().forget
    before = {n: b.clone() for n, b in model.named_buffers()}
    expected = worlds.logits(model, f)
    model.train()
    torch.testing.assert_close(still(model, f.float().x), expected)
    assert named(model, f) == pytest.approx(worlds.accuracy(worlds.original(), f))
    assert all(m.training for m in model.modules())
    assert all(torch.equal(b, before[n]) for n, b in model.named_buffers())


def test_some_takes_its_share_once_each_and_never_nothing():
    examples, rng = worlds.parts().retain, torch.Generator()
    assert len(some(examples, 0.3, rng).ids.unique()) == round(0.3 * len(examples))
    assert len(some(examples, 1e-9, rng)) == 1


# ---- NegGrad+


def test_neggrad_plus_without_its_climb_is_fine_tuning_bit_for_bit():
    """Clipping at 1000 multiplies by exactly one."""
    settings = {"lr": 0.03, "batch": 64, "weight_decay": 5e-4}
    steps = 2 * rounds(worlds.parts().retain, 64)
    mine = ran("neggrad_plus", alpha=1.0, clip=1000.0, steps=steps, **settings).model
    assert equal(mine, ran("finetune", epochs=2, **settings).model)


def test_the_less_weight_on_the_retain_set_the_more_is_forgotten():
    models = [ran("neggrad_plus", alpha=a, steps=60).model for a in (1.0, 0.9)]
    left = [on(m, "test_forget") for m in models]
    assert all(after <= before + 0.02 for before, after in pairwise(left))
    assert left[0] > 0.5 > left[-1]


def test_neggrad_plus_minimises_the_weighted_sum(monkeypatch):
    losses = []
    catch = lambda model, loss, **settings: losses.append(float(loss().detach()))  # noqa: E731
    monkeypatch.setattr("core.unlearners.neggrad_plus.descend", catch)
    split = worlds.parts()
    ran.__wrapped__("neggrad_plus", alpha=0.75, batch=1024, batch_forget=1024)
    f, r = split.forget.float(), split.retain.float()
    with torch.no_grad():
        kept = cross_entropy(worlds.original().train()(r.x), r.y)
        gone = worlds.original()(f.x).double().softmax(1).gather(1, f.y[:, None]).logit().mean()
    assert losses == [pytest.approx(float(0.75 * kept + 0.25 * gone), rel=1e-3)]


# ---- GA+FT


def test_the_climb_is_gradient_ascent_and_the_repair_is_fine_tuning_bit_for_bit(monkeypatch):
    """So no momentum goes from the one to the other, and no other setting."""
    nothing = lambda *asked: None  # noqa: E731
    for skipped, name, settings in (
        (Finetune, "gradient_ascent", {"batch": 128, "stop": 0.0}),
        (GradientAscent, "finetune", {"batch": 128, "lr": 0.01, "epochs": 1}),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(skipped, "run", nothing)
            climb_by = {"lr_ascent": 0.005, "epochs_ascent": 50, "clip": 1.0, "stop": 0.0}
            half = ran.__wrapped__("ga_ft", lr=0.01, epochs=1, **climb_by).model
        assert equal(half, ran(name, **settings).model)


def test_the_repair_mends_what_the_climb_broke():
    climbed = ran("gradient_ascent", lr=0.02, batch=128, stop=0.0).model
    mended = ran("ga_ft", lr_ascent=0.02, epochs_ascent=50, clip=1.0, lr=0.01).model
    assert on(climbed, "forget") <= 0.05
    assert on(mended, "test_retain") >= on(climbed, "test_retain")


# ---- SCRUB


def test_scrub_climbs_in_its_first_epochs_only_and_before_it_repairs():
    split, size = worlds.parts(), 64
    method = Scrub(msteps=2, epochs=3, batch=size, batch_forget=size)
    turns = [up for up, _ in method.turns(split.forget, split.retain, torch.Generator())]
    up, down = [True] * rounds(split.forget, size), [False] * rounds(split.retain, size)
    assert turns == [*up, *down, *up, *down, *down]
    assert method.ends(split.forget, split.retain)[-1] == len(turns)


def test_scrub_without_climbing_forgets_no_more_than_fine_tuning():
    mine = ran("scrub", msteps=0, lr=0.03, epochs=3).model
    assert on(mine, "test_forget") >= on(ran("finetune").model, "test_forget") - 0.05


def test_scrub_moves_the_student_and_never_the_teacher():
    model, teacher = worlds.original().train(), worlds.original().requires_grad_(False)
    args = worlds.parts(), worlds.target(), torch.Generator()
    Scrub(epochs=1).run(model, teacher, *args, silent)
    assert equal(teacher, worlds.original())
    assert not teacher.training
    assert not equal(model, teacher)


def test_the_softened_distance_is_kl_of_tempered_answers_times_t_squared():
    z = torch.randn(5, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    a, b, t = z, z.flip(0), 3.0
    p, q = (a / t).softmax(1), (b / t).softmax(1)
    expected = t**2 * (p * (p.log() - q.log())).sum(1)
    torch.testing.assert_close(softened(a, b, t), expected, rtol=1e-10, atol=0)
    assert softened(a, a, t).abs().max() < 1e-12


def test_the_climb_leaves_the_original_and_never_towards_more_certainty():
    """At the original's own answer, where the distance has no slope, and beyond it."""
    teacher, y = torch.tensor([[4.0, 0.0, 1.0]]), torch.tensor([0])
    for more in (-1.0, 0.0, 1.0, 50.0):
        student = (teacher + torch.tensor([more, 0.0, 0.0])).requires_grad_(True)
        gain = disobedience(teacher, student, y, 2.0)
        assert torch.autograd.grad(gain, student)[0][0, 0] <= 0
        if more < 0:
            torch.testing.assert_close(gain, softened(teacher, student, 2.0).mean())


def test_rewinding_takes_the_epoch_of_the_nearest_error():
    assert closest([0.1, 0.5, 0.8, 0.9], 0.55) == 1
    assert closest([0.4, 0.6], 0.5) == 0


@pytest.mark.parametrize("text", ["class:two", "random:20"])
def test_a_rewound_model_is_the_one_of_its_epoch(monkeypatch, text):
    monkeypatch.setattr("core.unlearners.rewind.closest", lambda errors, goal: 0)
    first, whole = (ran.__wrapped__("scrub", text, rewind=True, epochs=e) for e in (1, 3))
    assert whole.note.startswith("Back to epoch 1 of 3")
    assert equal(whole.model, first.model)


# ---- FCS


def test_contrast_is_smallest_where_all_retained_images_are_alike():
    m = 7
    retained = torch.ones(m, 4, dtype=torch.float64)
    forgotten = torch.randn(3, 4, generator=torch.Generator().manual_seed(0)).double()
    floor = torch.tensor(m).double().log()
    torch.testing.assert_close(contrast(forgotten, retained, 1.15), floor, rtol=1e-10, atol=0)
    retained[0] = 0
    assert contrast(forgotten, retained, 1.15) > floor


def test_the_first_pass_of_fcs_flattens_the_answer_to_forgotten_images(monkeypatch):
    passes = []

    def first(model, loss, **settings):
        passes.append(settings["steps"])
        return descend(model, loss, **settings) if len(passes) == 1 else 0

    monkeypatch.setattr("core.unlearners.fcs.descend", first)
    model, split = ran.__wrapped__("fcs", batch=16, epochs=2).model, worlds.parts()
    n, m = rounds(split.forget, 16), rounds(split.retain, 16)
    assert passes == [n, n, m, n, m]
    flat = torch.full((len(split.forget), len(worlds.CLASSES)), 1 / len(worlds.CLASSES))
    before, after = (kl(flat, worlds.logits(x, split.forget)) for x in (worlds.original(), model))
    assert after < 0.9 * before
