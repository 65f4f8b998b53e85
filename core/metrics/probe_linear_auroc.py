"""Linear probe AUROC: how well the linear probe ranks the forget class above the rest."""

from dataclasses import dataclass
from typing import ClassVar, final

import torch
from torch import Tensor

from core.metrics.base import Metric
from core.metrics.probing import Answers, ask, linear
from core.metrics.spread import linearised


def placements(answers: Answers) -> Tensor:
    """The share of the other side that a row is ranked rightly against (s m); a tie is half."""
    out = torch.empty_like(answers.scores)
    for scores, rows, placed in zip(answers.scores, answers.rows, out, strict=True):
        side = rows < answers.forget
        ours, theirs = scores[side], scores[~side]
        diff = ours[:, None] - theirs[None, :]
        wins = (diff > 0).double() + 0.5 * (diff == 0).double()
        placed[side], placed[~side] = wins.mean(1), wins.mean(0)
    return out


@final
@dataclass(frozen=True)
class ProbeLinearAUROC(Metric):
    """The linear probe without its threshold, which with few samples of the class sits far too
    high ("Mirage", 2026, arxiv.org/abs/2605.20282).

    A row's influence is its placement, the share of the other side that it is ranked rightly
    against (DeLong et al. 1988, doi.org/10.2307/2531595), averaged over the splits that tested it.
    """

    unit: ClassVar = "fraction"
    low: ClassVar = 0.0
    high: ClassVar = 1.0
    ideal: ClassVar = "gold"
    per_tap: ClassVar = True
    levels: ClassVar = frozenset({"class", "subclass"})

    def measure(self, model, reference, tap, seed):
        answers = ask(model, tap, seed, linear)
        sides = answers.average(placements(answers))
        means = {name: v.mean() for name, v in sides.items()}
        sway = {name: v - means[name] for name, v in sides.items()}
        return linearised(float(sum(means.values())) / 2, sway, seed, self.low, self.high)
