"""Unlearners: every one keeps the contract, and the checks catch methods that do not."""

import random
from dataclasses import dataclass
from typing import Any, ClassVar, final

import contract
import pytest
import torch
from torch.nn.functional import cross_entropy

from core.data.examples import DataError
from core.knobs import KnobError, knob
from core.losses import kl
from core.optim import descend, silent
from core.unlearners import UNLEARNERS
from core.unlearners.base import Citation, Unlearner


@pytest.mark.parametrize("check", contract.CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", UNLEARNERS)
def test_every_method(name, check):
    check(UNLEARNERS[name])


# ---- planted faults: each is a way in which published or plausible code goes wrong


@dataclass(frozen=True, kw_only=True)
class Sound(Unlearner):
    """A method without a fault: three steps of descent on wrong labels."""

    cite: ClassVar = Citation("Nobody", 2000, "Nothing", "example.org")
    needs: ClassVar[Any] = frozenset({"forget"})
    norms: ClassVar[Any] = "frozen"

    lr: float = knob(0.01, 1e-5, 1.0, "step size", log=True)

    def run(self, model, teacher, split, target, rng, on_step):
        def loss():
            f = next(batches)
            return cross_entropy(model(f.x), (f.y + 1) % 6)

        batches = split.forget.batches(32, rng)
        descend(model, loss, steps=3, lr=self.lr, clip=1.0, on_step=on_step)


@final
class StepsTheTeacher(Sound):
    """A published SCRUB: the optimiser holds the teacher, so the student never moves."""

    def run(self, model, teacher, split, target, rng, on_step):
        teacher.requires_grad_(True)
        f = next(split.forget.batches(32, rng))
        descend(
            teacher,
            lambda: -kl(model(f.x).detach().softmax(1), teacher(f.x)),
            steps=3,
            lr=0.01,
            on_step=on_step,
        )


@final
class ReadsTheRetainSet(Sound):
    """It needs only the forget set, it says."""

    def run(self, model, teacher, split, target, rng, on_step):
        r = next(split.retain.batches(32, rng))
        descend(model, lambda: cross_entropy(model(r.x), r.y), steps=1, lr=0.1, on_step=on_step)


@final
class DeclaresTooMuch(Sound):
    """It never reads the retain set that it asks for."""

    needs: ClassVar = frozenset({"forget", "retain"})


@final
@dataclass(frozen=True, kw_only=True)
class DefaultOutOfRange(Sound):
    lr: float = knob(10.0, 1e-5, 1.0, "step size", log=True)


@final
class DoesNothing(Sound):
    """A method that looks at the forget set and leaves it at that."""

    def run(self, model, teacher, split, target, rng, on_step):
        next(split.forget.batches(32, rng))
        on_step(1, 1)


@final
class Descends(Sound):
    """Ascent with its sign lost: the class is learnt once more."""

    def run(self, model, teacher, split, target, rng, on_step):
        f = split.forget.float()
        descend(model, lambda: cross_entropy(model(f.x), f.y), steps=3, lr=0.01, on_step=on_step)


@final
class MovesItsNorms(Sound):
    """It switches to training mode once more, and a forget-only batch moves the statistics."""

    def run(self, model, teacher, split, target, rng, on_step):
        model.train()
        super().run(model, teacher, split, target, rng, on_step)


@final
class DrawsFromElsewhere(Sound):
    """Its batches come from a generator that no seed reaches."""

    def run(self, model, teacher, split, target, rng, on_step):
        other = torch.Generator().manual_seed(random.getrandbits(32))
        super().run(model, teacher, split, target, other, on_step)


@final
class LeavesAHook(Sound):
    def run(self, model, teacher, split, target, rng, on_step):
        model.head.register_forward_hook(lambda module, args, output: None)
        super().run(model, teacher, split, target, rng, on_step)


@final
class CutsTheHead(Sound):
    """The class is gone from the head, and so is the head's row: k - 1 outputs."""

    def run(self, model, teacher, split, target, rng, on_step):
        super().run(model, teacher, split, target, rng, on_step)
        model.head = torch.nn.Linear(64, 5)
        model.masked = model.masked[:5]


@final
class CannotBeStopped(Sound):
    """It hears no one who wants it to stop."""

    def run(self, model, teacher, split, target, rng, on_step):
        super().run(model, teacher, split, target, rng, silent)


@final
class HidesItsNaN(Sound):
    """It repairs with zeros what has diverged, so that a failed run looks like forgetting."""

    def run(self, model, teacher, split, target, rng, on_step):
        with torch.no_grad():
            for p in model.parameters():
                p.copy_(torch.nan_to_num(p))
        super().run(model, teacher, split, target, rng, on_step)


@final
class WantsTwoImages(Sound):
    def run(self, model, teacher, split, target, rng, on_step):
        f = split.forget.float()
        spread = (f.x - f.x.mean(0)).square().sum() / (len(f.y) - 1)  # of one image: 0 / 0
        descend(
            model,
            lambda: cross_entropy(model(f.x), (f.y + 1) % 6) + 0 * spread,
            steps=3,
            lr=0.01,
            on_step=on_step,
        )


FAULTS = (
    (StepsTheTeacher, contract.changes_the_model, AssertionError),
    (StepsTheTeacher, contract.is_nearer_gold_than_doing_nothing, AssertionError),
    (ReadsTheRetainSet, contract.answers_in_eval_mode, DataError),
    (ReadsTheRetainSet, contract.stops_when_asked, DataError),
    (DeclaresTooMuch, contract.reads_what_it_declares, AssertionError),
    (DefaultOutOfRange, contract.answers_in_eval_mode, KnobError),
    (DoesNothing, contract.changes_the_model, AssertionError),
    (DoesNothing, contract.is_nearer_gold_than_doing_nothing, AssertionError),
    (Descends, contract.is_nearer_gold_than_doing_nothing, AssertionError),
    (MovesItsNorms, contract.keeps_the_statistics_that_it_says_it_keeps, AssertionError),
    (DrawsFromElsewhere, contract.repeats_itself_whatever_the_global_state, AssertionError),
    (LeavesAHook, contract.leaves_no_hook, AssertionError),
    (CutsTheHead, contract.has_finite_weights_and_k_outputs, AssertionError),
    (CannotBeStopped, contract.stops_when_asked, pytest.fail.Exception),
    (HidesItsNaN, contract.fails_rather_than_give_what_is_not_finite, pytest.fail.Exception),
    (WantsTwoImages, contract.takes_a_single_forgotten_image, FloatingPointError),
)


@pytest.mark.parametrize("check", contract.CHECKS, ids=lambda check: check.__name__)
def test_a_method_without_fault_passes(check):
    check(Sound)


@pytest.mark.parametrize(
    ("fault", "check", "error"), FAULTS, ids=lambda value: getattr(value, "__name__", "")
)
def test_a_fault_is_caught(fault, check, error):
    with pytest.raises(error):
        check(fault)
