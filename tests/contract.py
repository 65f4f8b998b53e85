"""Contract: what must hold for every unlearner, as checks that take its class."""

import contextlib
import random
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
import worlds
from torch.nn.modules.batchnorm import _BatchNorm

from core.data.split import Split
from core.data.targets import TargetError
from core.models.classifier import Classifier
from core.optim import Diverged
from core.registry import describe
from core.unlearners.base import Unlearned, Unlearner

LEVELS = {"class": "class:two", "subclass": "subclass:two odd", "instance": "random:20"}
SHORT = {
    "epochs": 1, "steps": 1, "share": 0.01, "noise_steps": 2, "attack": 2,
    "count": 8, "most": 8, "measured": 4, "images": 32,
}  # fmt: skip
"""Knobs that say how long a method runs, or on how much, and what is enough here."""


class Stop(Exception):
    """What a person who cancels a run raises."""


def level(cls: type[Unlearner]) -> str:
    return "class" if "class" in cls.levels else "instance"


def brief(cls: type[Unlearner], **settings: Any) -> Unlearner:
    """The method with its defaults, as short as its knobs let it be."""
    low = {k.name: k.kind(max(k.low or 0, SHORT[k.name])) for k in cls.knobs() if k.name in SHORT}
    return cls(**(low | settings))


def run(
    method: Unlearner, model: Classifier | None = None, split: Split | None = None, **rest: Any
) -> Unlearned:
    text = LEVELS[level(type(method))]
    model = worlds.original() if model is None else model
    return method(model, split or worlds.parts(text), worlds.target(text), **rest)


@cache
def ran(cls: type[Unlearner]) -> Unlearned:
    """The method at its defaults, run once for all the checks that only look."""
    return run(cls())


@cache
def ran_briefly(cls: type[Unlearner]) -> Unlearned:
    return run(brief(cls))


def same(a: Classifier, b: Classifier) -> bool:
    """Bit-identical weights and buffers."""
    mine, other = a.state_dict(), b.state_dict()
    return mine.keys() == other.keys() and all(torch.equal(mine[n], other[n]) for n in mine)


def belief(model: Classifier) -> float:
    """Mean probability of the true class over unseen images of what is to be forgotten."""
    forget = worlds.parts().test_forget
    p = worlds.logits(model, forget).softmax(1)
    return float(p.gather(1, forget.y[:, None]).mean())


def global_state() -> tuple[str, ...]:
    """All generators that a method could draw from behind our back."""
    legacy = np.random.get_state()  # noqa: NPY002 - it is this one that must not move
    return str(torch.get_rng_state().tolist()), str(random.getstate()), str(legacy)


# ---- the checks


def leaves_the_original_alone(cls: type[Unlearner]) -> None:
    def stop(done: int, total: int) -> None:
        raise Stop

    for on_step in (lambda done, total: None, stop):
        original = worlds.original()
        with contextlib.suppress(Stop):
            run(brief(cls), original, on_step=on_step)
        assert same(original, worlds.original())
        assert not any(m.training for m in original.modules())
        assert all(p.requires_grad and p.grad is None for p in original.parameters())


def gives_a_model_of_its_own(cls: type[Unlearner]) -> None:
    original = worlds.original()
    given = run(brief(cls), original).model
    mine = {t.data_ptr() for t in original.state_dict().values()}
    assert not mine & {t.data_ptr() for t in given.state_dict().values()}


def answers_in_eval_mode(cls: type[Unlearner]) -> None:
    model = ran(cls).model
    assert not any(m.training for m in model.modules())
    assert all(p.requires_grad and p.grad is None for p in model.parameters())


def leaves_no_hook(cls: type[Unlearner]) -> None:
    kinds = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    assert not any(getattr(m, kind) for m in ran(cls).model.modules() for kind in kinds)


def has_finite_weights_and_k_outputs(cls: type[Unlearner]) -> None:
    model = ran(cls).model
    floats = [t for t in model.state_dict().values() if t.is_floating_point()]
    assert all(torch.isfinite(t).all() for t in floats)
    logits = worlds.logits(model, worlds.parts().test_retain)
    assert logits.shape[1] == len(worlds.CLASSES)
    assert torch.isfinite(logits[:, ~model.masked]).all()


def repeats_itself_whatever_the_global_state(cls: type[Unlearner]) -> None:
    torch.manual_seed(123)
    before = global_state()
    again = run(brief(cls))
    assert global_state() == before
    assert same(again.model, ran_briefly(cls).model)


def reads_nothing_undeclared(cls: type[Unlearner]) -> None:
    assert all(count == 0 for name, count in ran(cls).read.items() if name not in cls.needs)
    split = worlds.parts(LEVELS[level(cls)])
    undeclared = {n: worlds.garbled(s) for n, s in vars(split).items() if n not in cls.needs}
    other = run(brief(cls), split=replace(split, **undeclared))
    assert same(other.model, ran_briefly(cls).model)


def reads_what_it_declares(cls: type[Unlearner]) -> None:
    """At its defaults, or where a word among its knobs is another one."""
    unread = {n for n, count in ran(cls).read.items() if n in cls.needs and not count}
    words = [(k.name, c) for k in cls.knobs() for c in k.choices] if unread else []
    for name, choice in words:
        unread -= {n for n, count in run(brief(cls, **{name: choice})).read.items() if count}
    assert not unread


def keeps_the_statistics_that_it_says_it_keeps(cls: type[Unlearner]) -> None:
    if cls.norms == "train":
        return
    norms = [m for m in ran(cls).model.modules() if isinstance(m, _BatchNorm)]
    old = [m for m in worlds.original().modules() if isinstance(m, _BatchNorm)]
    for mine, theirs in zip(norms, old, strict=True):
        kept = dict(theirs.named_buffers())
        assert all(torch.equal(b, kept[n]) for n, b in mine.named_buffers())


def takes_a_single_forgotten_image(cls: type[Unlearner]) -> None:
    split = worlds.parts(LEVELS[level(cls)])
    done = run(brief(cls), split=replace(split, forget=split.forget[:1]))
    assert done.read["forget"] <= 1


def stops_when_asked(cls: type[Unlearner]) -> None:
    calls = []

    def on_step(done: int, total: int) -> None:
        calls.append(done)
        raise Stop

    with pytest.raises(Stop):
        run(cls(), on_step=on_step)
    assert calls == [1]


def counts_its_steps(cls: type[Unlearner]) -> None:
    calls: list[tuple[int, int]] = []
    run(brief(cls), on_step=lambda done, total: calls.append((done, total)))
    done, total = zip(*calls, strict=True)
    assert list(done) == list(range(1, len(calls) + 1))
    assert len(set(total)) == 1
    assert done[-1] <= total[0]


def changes_the_model(cls: type[Unlearner]) -> None:
    assert cls.control or not same(ran(cls).model, worlds.original())


def is_nearer_gold_than_doing_nothing(cls: type[Unlearner]) -> None:
    """By what it believes of unseen images: on those it was trained on the original is certain.

    Nothing in a method that only trains on the retain set turns against what is to be forgotten;
    whether it moves in a world so small is luck.
    """
    hopes = cls.from_original and cls.needs == {"retain"}
    if cls.control or level(cls) != "class" or hopes:
        return
    gold, before = belief(worlds.gold()), belief(worlds.original())
    assert abs(belief(ran(cls).model) - gold) < abs(before - gold)


def fails_rather_than_give_what_is_not_finite(cls: type[Unlearner]) -> None:
    if not cls.from_original:
        return
    broken = worlds.original()
    with torch.no_grad():
        next(broken.body.parameters())[0] = torch.nan
    with pytest.raises(Diverged):
        run(brief(cls), broken)


def survives_or_refuses_the_largest_step(cls: type[Unlearner]) -> None:
    steps = {k.name: k.high for k in cls.knobs() if k.name == "lr"}
    if not steps:
        return
    try:
        model = run(brief(cls, **steps)).model
    except Diverged:
        return
    assert all(torch.isfinite(p).all() for p in model.parameters())


def serves_the_levels_that_it_declares(cls: type[Unlearner]) -> None:
    for name, text in LEVELS.items():
        asked = (worlds.original(), worlds.parts(text), worlds.target(text))
        if name in cls.levels:
            assert all(n in cls.needs for n, count in brief(cls)(*asked).read.items() if count)
        else:
            with pytest.raises(TargetError):
                brief(cls)(*asked)


def takes_several_classes(cls: type[Unlearner]) -> None:
    if "class" in cls.levels:
        text = "classes:two,four"
        brief(cls)(worlds.original(), worlds.parts(text), worlds.target(text))


def says_what_it_is_and_where_it_comes_from(cls: type[Unlearner]) -> None:
    title, sentence = describe(cls)
    assert title
    assert sentence
    assert cls.cite is not None or cls.control
    assert all(k.help and k.name for k in cls.knobs())


CHECKS = (
    leaves_the_original_alone,
    gives_a_model_of_its_own,
    answers_in_eval_mode,
    leaves_no_hook,
    has_finite_weights_and_k_outputs,
    repeats_itself_whatever_the_global_state,
    reads_nothing_undeclared,
    reads_what_it_declares,
    keeps_the_statistics_that_it_says_it_keeps,
    takes_a_single_forgotten_image,
    stops_when_asked,
    counts_its_steps,
    changes_the_model,
    is_nearer_gold_than_doing_nothing,
    fails_rather_than_give_what_is_not_finite,
    survives_or_refuses_the_largest_step,
    serves_the_levels_that_it_declares,
    takes_several_classes,
    says_what_it_is_and_where_it_comes_from,
)
