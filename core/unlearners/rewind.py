"""Rewind: go back to the epoch whose model errs as it does on images held out."""

import copy
from collections.abc import Sequence

import torch
from torch import Tensor

from core.data.examples import Examples
from core.models.classifier import Classifier
from core.unlearners.two_sets import named

__support__ = True

HELD = 0.1
"""Share of a set that is held out."""


def apart(examples: Examples, rng: torch.Generator) -> tuple[Examples, Examples]:
    """The examples in two parts: most of them, and a random share `HELD`."""
    order = torch.randperm(len(examples), generator=rng).to(examples.y.device)
    cut = int(HELD * len(examples))
    return examples[order[cut:]], examples[order[:cut]]


def closest(errors: Sequence[float], goal: float) -> int:
    """The first of those whose error is nearest the goal."""
    return min(range(len(errors)), key=lambda i: abs(errors[i] - goal))


class Rewind:
    """The model after each epoch, with its error on the forget set."""

    def __init__(self, model: Classifier, forget: Examples, held: Examples) -> None:
        self.model, self.forget, self.held = model, forget, held
        self.errors: list[float] = []
        self.states: list[dict[str, Tensor]] = []

    def keep(self) -> None:
        self.errors.append(1 - named(self.model, self.forget))
        self.states.append(copy.deepcopy(self.model.state_dict()))

    def back(self) -> str:
        """Give the model the state whose error is nearest to its final one on the images held."""
        goal = 1 - named(self.model, self.held)
        chosen = closest(self.errors, goal)
        self.model.load_state_dict(self.states[chosen])
        return f"Back to epoch {chosen + 1} of {len(self.errors)}, for an error of {goal:.1%}."
