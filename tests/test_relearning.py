"""Relearning: the original needs no step, gold many; nothing is changed, kept or done twice."""

import dataclasses
from itertools import pairwise

import pytest
import seen
import torch
import worlds
from seen import read

from core.bench import Bench, Memory
from core.data.examples import DataError
from core.metrics import relearning
from core.metrics.base import Unavailable
from core.metrics.relearning import MOST, Relearned, lesson, looks, relearn
from core.optim import Diverged
from core.records import Cancelled, silent
from core.samples import parts as samples
from core.zoo import Made

SETS = {n: getattr(worlds.parts(), n) for n in ("forget", "retain", "test_forget", "test_retain")}


def test_the_original_needs_no_step_and_gold_does():
    first = relearn(worlds.original(), SETS)
    again = relearn(worlds.gold(), SETS, first.bar)
    assert first.steps == (0,)
    assert first.bar == pytest.approx(0.95 * first.accuracy[0], abs=1e-12)
    assert first.back
    assert again.back
    assert again.steps[-1] > 1
    assert again.accuracy[-1] >= first.bar > max(again.accuracy[:-1])


def test_the_accuracy_is_that_on_unseen_images_of_the_class():
    found = relearn(worlds.original(), SETS)
    assert found.accuracy[0] == worlds.accuracy(worlds.original(), SETS["test_forget"])
    assert found.n == len(SETS["test_forget"])


def test_a_mask_hides_nothing_from_whoever_holds_the_model():
    masked = worlds.original()
    masked.masked[2] = True
    assert worlds.accuracy(masked, SETS["test_forget"]) == 0
    assert relearn(masked, SETS, 0.5).steps == (0,)


@pytest.fixture
def _short(monkeypatch):
    """Six steps at most."""
    monkeypatch.setattr(relearning, "looks", lambda: [0, 3, 6])


@pytest.mark.usefixtures("_short")
def test_the_model_is_left_as_it_was():
    model = worlds.gold()
    model.masked[0] = True
    before = {n: t.clone() for n, t in model.state_dict().items()}
    assert relearn(model, SETS, 0.9).steps == (0, 3, 6)
    assert not model.training
    assert all(torch.equal(t, before[n]) for n, t in model.state_dict().items())
    assert all(p.grad is None for p in model.parameters())


@pytest.mark.usefixtures("_short")
def test_it_repeats_itself_whatever_torchs_own_generator_does():
    found = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        found.append(relearn(worlds.original(), SETS, 1.1).accuracy)
    assert found[0] == found[1]
    assert len(set(found[0])) > 1


def test_the_lesson_is_the_forget_set_and_as_many_retained_images():
    ids = lesson(SETS).ids
    n = len(SETS["forget"])
    assert torch.equal(ids[:n], SETS["forget"].ids)
    assert len(ids) == 2 * n == len(ids.unique())
    assert torch.isin(ids[n:], SETS["retain"].ids).all()


def test_it_is_looked_at_after_each_of_the_first_steps_and_then_a_tenth_apart():
    found = looks()
    assert found[:21] == list(range(21))
    assert found[-1] == MOST
    assert all(1 <= b - a <= max(1, a / 10) for a, b in pairwise(found))


@pytest.mark.usefixtures("_short")
def test_what_never_comes_back_is_given_up():
    found = relearn(worlds.gold(), SETS, 1.1)
    assert found.steps == (0, 3, 6)
    assert not found.back


def test_a_loss_that_is_not_finite_and_an_empty_lesson_are_told():
    broken = worlds.gold()
    with torch.no_grad():
        broken.head.weight.fill_(torch.nan)
    with pytest.raises(Diverged):
        relearn(broken, SETS, 0.9)
    with pytest.raises(DataError):
        relearn(worlds.gold(), SETS | {n: SETS[n][:0] for n in ("forget", "retain")}, 0.9)


# The readings


def test_steps_are_the_last_looks_and_ain_is_their_ratio():
    model, gold = (
        dataclasses.replace(seen.outputs(m), relearned=seen.relearned(steps))
        for m, steps in ((1, 3), (2, 12))
    )
    assert read("relearn_steps", model).value == 3
    assert read("ain", model, gold).value == 0.25
    assert read("ain", gold, gold).value == 1


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (seen.relearned(0), "without a single step"),
        (Relearned((0, MOST), (0.0, 0.2), 0.9, 20), f"not learned it within {MOST} steps"),
        (None, "nobody relearned it"),
    ],
)
def test_a_gold_that_gives_no_ratio_is_told(found, why):
    gold = dataclasses.replace(seen.outputs(2), relearned=found)
    with pytest.raises(Unavailable, match=why):
        read("ain", seen.outputs(1), gold)


# The bench


def bench(text: str, memory: Memory, **models) -> Bench:
    data, target = worlds.data(), worlds.target(text)
    found = Bench(data, target, samples(data, target), memory)
    for stage, model in models.items():
        stage = stage.replace("_", " ")
        found.models[stage] = Made(f"{text} {stage}", model, 1.0, {}, "")
    return found


def trio() -> dict:
    return {"original": worlds.original(), "gold_1": worlds.gold(), "unlearn": worlds.original(3)}


@pytest.mark.usefixtures("_short")
def test_a_bench_relearns_every_model_once(monkeypatch):
    memory, real, calls = Memory(), relearning.relearn, []
    monkeypatch.setattr("core.bench.relearn", lambda *a: calls.append(a) or real(*a))
    told, models = [], trio()
    for one in (bench("class:two", memory, **models), bench("class:two", memory, **models)):
        one.observe(lambda stage, done, of: told.append((stage, done, of)))
        bars = {o.relearned.bar for o in one.outputs.values() if o.relearned}
        assert bars == {one.outputs["original"].relearned.bar}  # pyright: ignore
        assert len(memory) == 3
        assert all(memory.find(m.key, one._about) is one.outputs[s] for s, m in one.models.items())
        assert "relearn" in one.seconds
    assert len(calls) == 3
    steps = [done / of for stage, done, of in told if stage == "relearn"]
    assert steps[-1] == 1
    assert all(0 <= share <= 1 for share in steps)


def test_single_images_are_not_relearned():
    one = bench("random:20", Memory(), original=worlds.original())
    one.observe(silent)
    assert one.outputs["original"].relearned is None


def test_a_model_that_diverges_has_no_curve_and_the_others_have():
    broken = worlds.original()
    with torch.no_grad():
        broken.head.weight.fill_(torch.nan)
    one = bench("class:two", Memory(), original=worlds.original(), unlearn=broken)
    one.observe(silent)
    assert one.outputs["unlearn"].relearned is None
    assert one.outputs["original"].relearned is not None


def test_relearning_can_be_cancelled_between_two_steps():
    taken = []

    def stop(stage, done, of):
        if stage == "relearn":
            taken.append(done)
            raise Cancelled

    with pytest.raises(Cancelled):
        bench("class:two", Memory(), **trio()).observe(stop)
    assert taken == [MOST + 1]  # gold's first step; the original took none
