"""Amnesiac: what was undone is undone exactly, and what was not stays."""

import torch
import worlds

from core.unlearners.amnesiac import Amnesiac


def ran(text: str = "class:two", **settings):
    return Amnesiac(**settings)(worlds.original(), worlds.parts(text), worlds.target(text), seed=3)


def fresh():
    """The network as it begins: the run's first draws from its seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        return worlds.original().fresh()


def moved(model) -> float:
    """How far the weights are from where they began."""
    pairs = zip(model.parameters(), fresh().parameters(), strict=True)
    return float(sum((a - b).detach().square().sum() for a, b in pairs)) ** 0.5


def test_where_every_batch_holds_a_forgotten_image_nothing_is_left():
    done = ran(batch=1024, repair=0, epochs=4)
    assert moved(done.model) < 1e-4


def test_where_few_batches_do_most_of_the_training_is_left():
    parts = {n: ran(n, batch=64, repair=0, epochs=2).model for n in ("random:1", "class:two")}
    assert moved(parts["random:1"]) > 5 * moved(parts["class:two"]) > 0


def test_the_repair_gives_back_the_retained_classes_alone():
    model = ran(batch=64, repair=6, epochs=1).model
    parts = worlds.parts()
    assert worlds.accuracy(model, parts.test_forget) == 0
    assert worlds.accuracy(model, parts.test_retain) > 0.7


def test_nothing_of_the_original_is_used():
    asked = (worlds.parts(), worlds.target())
    method = Amnesiac(epochs=1, repair=1)
    a, b = (method(worlds.original(seed), *asked, seed=3).model for seed in (0, 1))
    assert all(torch.equal(x, y) for x, y in zip(a.parameters(), b.parameters(), strict=True))
