"""The controls do to the model what they are there for, and no more."""

import pytest
import torch
import worlds

from core.data.examples import join
from core.unlearners import UNLEARNERS
from core.unlearners.base import Unlearned

SEVERAL = "classes:two,four"


def run(name: str, text: str = "class:two", seed: int = 0) -> Unlearned:
    method = UNLEARNERS[name]()
    return method(worlds.original(), worlds.parts(text), worlds.target(text), seed=seed)


def equal(model: torch.nn.Module) -> bool:
    """The original's weights and statistics, bit for bit."""
    mine = dict(model.named_parameters()) | dict(model.named_buffers())
    return all(
        torch.equal(mine[n], t) for n, t in worlds.original().state_dict().items() if n != "masked"
    )


def test_doing_nothing_gives_the_original_bit_for_bit():
    done = run("do_nothing")
    assert equal(done.model)
    assert not done.model.masked.any()


def test_masking_changes_no_weight_and_no_other_logit():
    model, rows = run("mask_logits", SEVERAL).model, worlds.parts(SEVERAL).test_retain
    assert equal(model)
    before, after = worlds.logits(worlds.original(), rows), worlds.logits(model, rows)
    assert torch.isneginf(after[:, [2, 4]]).all()
    assert torch.equal(after[:, [0, 1, 3, 5]], before[:, [0, 1, 3, 5]])


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_nothing_survives_destruction(seed):
    """Chance is 1/6; a net at random is rarely twice as good."""
    model = run("destroy", seed=seed).model
    everything = join(worlds.parts().test_retain, worlds.parts().test_forget)
    assert worlds.accuracy(model, everything) <= 2 / 6
    old = dict(worlds.original().named_parameters())
    weights = [(p, old[n]) for n, p in model.named_parameters() if p.ndim > 1]
    assert not any(torch.equal(new, before) for new, before in weights)
