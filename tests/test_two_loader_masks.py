"""Methods with a teacher, a mask, a penalty or a frozen body: each against its formula."""

from functools import cache
from typing import Any

import pytest
import torch
import worlds
from scipy.stats import chisquare
from torch.nn.functional import cross_entropy

from core.knobs import Value
from core.losses import kl
from core.models.classifier import Classifier
from core.unlearners import UNLEARNERS
from core.unlearners.base import Unlearned
from core.unlearners.eu_k import EUk
from core.unlearners.last_layers import parts
from core.unlearners.lotus import gumbel, temperature
from core.unlearners.salun import saliency

# Step sizes of this world: its forget set gives two to three steps a pass, not twenty.
HERE: dict[str, dict[str, Any]] = {
    "bad_teacher": {"lr": 0.03, "batch": 16, "epochs": 10, "share": 1.0},
    "salun": {"lr": 0.03, "batch": 32, "epochs": 4},
    "lotus": {"lr": 0.03, "batch": 32},
    "eu_k": {"epochs": 10, "batch": 32},
}


@cache
def ran(name: str, text: str = "class:two", **settings: Value) -> Unlearned:
    method = UNLEARNERS[name](**(HERE.get(name, {}) | settings))
    return method(worlds.original(), worlds.parts(text), worlds.target(text))


def on(model: Classifier, name: str) -> float:
    return worlds.accuracy(model, getattr(worlds.parts(), name))


def equal(a: torch.nn.Module, b: torch.nn.Module) -> bool:
    mine, other = a.state_dict(), b.state_dict()
    return all(torch.equal(mine[n], other[n]) for n in mine)


def caught(monkeypatch, name: str, steps: int, **settings: Value) -> list[float]:
    """The method's first losses; no step is taken between them."""
    losses: list[float] = []

    def catch(model, loss, **rest):
        losses.extend(float(loss().detach()) for _ in range(steps))
        return steps

    monkeypatch.setattr(f"core.unlearners.{name}.descend", catch)
    UNLEARNERS[name](**settings)(worlds.original(), worlds.parts(), worlds.target())
    return losses


@pytest.mark.parametrize("name", HERE)
def test_it_forgets_the_class_and_keeps_the_others(name):
    """By 250 unseen images of the rest: 0.1 is four standard errors of a difference."""
    model = ran(name).model
    assert on(model, "forget") <= 0.1
    assert on(model, "test_forget") <= 0.1
    assert on(model, "test_retain") >= on(worlds.original(), "test_retain") - 0.1


# ---- Bad Teacher


def bad() -> Classifier:
    """The untrained model that teaches at seed 0: the method draws nothing before it."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return worlds.original().fresh().eval()


def test_each_image_is_compared_with_the_answer_of_its_own_teacher(monkeypatch):
    """At the original's weights there is nothing to learn from the retain set."""
    split = worlds.parts()
    (loss,) = caught(monkeypatch, "bad_teacher", 1, share=1.0, batch=1024)
    goal = worlds.logits(bad(), split.forget).softmax(1)
    apart = len(split.forget) * kl(goal, worlds.logits(worlds.original(), split.forget))
    assert loss == pytest.approx(float(apart) / (len(split.forget) + len(split.retain)), rel=1e-4)


def test_the_student_comes_nearer_to_the_bad_teacher():
    forget = worlds.parts().forget
    goal = worlds.logits(bad(), forget).softmax(1)
    before, after = (
        kl(goal, worlds.logits(m, forget)) for m in (worlds.original(), ran("bad_teacher").model)
    )
    assert after < 0.3 * before


@pytest.mark.parametrize("name", ["bad_teacher", "lotus"])
def test_only_a_share_of_the_retain_set_is_read(name):
    n = len(worlds.parts().retain)
    assert ran(name, share=0.3, epochs=1).read == {"forget": worlds.TRAIN, "retain": round(0.3 * n)}


# ---- SalUn


def masks(rho: float) -> list[torch.Tensor]:
    return saliency(worlds.original(), worlds.parts().forget.ordered(32), rho)


def test_the_mask_holds_exactly_the_steepest_weights():
    f, model = worlds.parts().forget.float(), worlds.original()
    loss = cross_entropy(model(f.x), f.y, reduction="sum")
    slopes = torch.autograd.grad(loss, list(model.parameters()))
    steep = torch.cat([s.abs().flatten() for s in slopes])
    chosen = torch.cat([m.flatten() for m in masks(0.3)])
    assert int(chosen.sum()) == round(0.3 * len(steep))
    # Batches of 32 are summed in another order than the whole: equal up to rounding.
    assert steep[chosen].min() >= steep[~chosen].max() * (1 - 1e-3)


def test_outside_the_mask_nothing_moves_and_inside_everything_may():
    model = ran("salun", rho=0.3, weight_decay=0.05).model
    moved = [
        (a - b).detach().abs()
        for a, b in zip(model.parameters(), worlds.original().parameters(), strict=True)
    ]
    pairs = list(zip(moved, masks(0.3), strict=True))
    assert max(float((d * ~m).max()) for d, m in pairs) == 0
    inside = torch.cat([d[m] for d, m in pairs])
    assert (inside > 0).double().mean() > 0.9


def test_salun_on_all_weights_is_random_label_bit_for_bit():
    settings = {"lr": 0.03, "epochs": 2, "batch": 32}
    mine = ran("salun", rho=1.0, weight_decay=0.0, **settings).model
    assert equal(mine, ran("random_label", **settings).model)


# ---- l1-sparse


def test_l1_sparse_without_its_penalty_is_fine_tuning_bit_for_bit():
    settings = {"lr": 0.05, "epochs": 3, "weight_decay": 1e-4}
    mine = ran("l1_sparse", gamma=0.0, **settings).model
    assert equal(mine, ran("finetune", **settings).model)


def test_the_penalty_is_the_absolute_sum_and_falls_to_zero(monkeypatch):
    """Three steps an epoch of batches that hold everything, so cross-entropy is the same."""
    settings = {"batch": 1024, "epochs": 4}
    plain, full = (
        torch.tensor(caught(monkeypatch, "l1_sparse", 4, gamma=g, **settings)) for g in (0.0, 0.01)
    )
    size = sum(float(p.detach().abs().sum()) for p in worlds.original().parameters())
    expected = 0.01 * size * torch.tensor([1.0, 0.75, 0.5, 0.25])
    torch.testing.assert_close(full - plain, expected, rtol=1e-3, atol=0)


def test_the_penalty_makes_weights_vanish():
    small = [
        sum(
            float((p.abs() < 1e-3).sum())
            for p in ran("l1_sparse", gamma=g, epochs=10).model.parameters()
        )
        for g in (0.0, 3e-3)
    ]
    assert small[1] > 1.5 * small[0]


# ---- CF-k and EU-k


@pytest.mark.parametrize("name", ["cf_k", "eu_k"])
@pytest.mark.parametrize("k", [1, 2, 4])
def test_only_the_last_parts_move(name, k):
    """Statistics of batch norms included."""
    pairs = zip(parts(ran(name, k=k, epochs=1).model), parts(worlds.original()), strict=True)
    same = [equal(a, b) for a, b in pairs]
    assert same == [True] * (5 - k) + [False] * k


def test_cf_k_of_all_parts_is_fine_tuning_bit_for_bit():
    settings = {"lr": 0.05, "epochs": 1, "weight_decay": 1e-4}
    assert equal(ran("cf_k", k=20, **settings).model, ran("finetune", **settings).model)


def test_eu_k_owes_nothing_to_the_parts_it_replaces():
    method = EUk(k=2, epochs=1)
    other = worlds.original()
    for mine, new in zip(parts(other)[-2:], parts(worlds.blank(5))[-2:], strict=True):
        mine.load_state_dict(new.state_dict())
    a, b = (method(m, worlds.parts(), worlds.target()).model for m in (worlds.original(), other))
    assert equal(a, b)


# ---- LoTUS


def test_the_temperature_is_one_without_excess_and_rises_with_it():
    assert temperature(0.0, 8.0) == 1.0
    assert temperature(0.5, 0.0) == 1.0
    values = [temperature(d, 8.0) for d in (-0.1, 0.0, 0.1, 1.0)]
    assert values == sorted(values)
    assert values[-1] == pytest.approx(2980.958, rel=1e-6)


def test_the_largest_of_noisy_logits_is_a_draw_from_the_softmax():
    z, n = torch.tensor([1.0, 0.0, -1.0, 0.5]), 20_000
    drawn = gumbel(z.expand(n, 4), torch.Generator().manual_seed(0)).argmax(1)
    assert (
        chisquare(
            torch.bincount(drawn, minlength=4).numpy(), (n * z.double().softmax(0)).numpy()
        ).pvalue
        > 0.01
    )


def test_the_target_is_flat_for_forgotten_images_and_a_label_for_the_others(monkeypatch):
    targets = []

    def spy(logits, goal):
        targets.append(goal)
        return cross_entropy(logits, goal)

    monkeypatch.setattr("core.unlearners.lotus.cross_entropy", spy)
    caught(monkeypatch, "lotus", 1, batch=1024)
    top = targets[0].max(1).values
    flat = top < 1 / len(worlds.CLASSES) + 0.01  # noise and logits, over a temperature of 2980
    assert int(flat.sum()) == worlds.TRAIN
    assert (top[~flat] == 1).all()


def test_lotus_ends_where_little_is_still_named():
    assert on(ran("lotus").model, "forget") <= 0.05
    assert "of 10 epochs" in ran("lotus").note
