"""POUR-P: projects the forgotten class's direction out of the features, in closed form."""

from dataclasses import dataclass
from typing import ClassVar, final

from core.data.targets import ForgetClasses
from core.knobs import knob
from core.unlearners.base import Unlearner
from core.unlearners.pour import CITE, class_means, common_share, head_rows, projection, settle

COMMON = 0.5
"""Cosine to the common mean from which a class mean is no direction of its own."""


@final
@dataclass(frozen=True, kw_only=True)
class PourP(Unlearner):
    """z -> z - w (w . z) / |w|^2 between body and head; several classes lose their joint span.

    No weight moves. The forget set is declared because the class-mean direction needs it; with
    the head's row it is not read. Under neural collapse the head's row sends the forgotten class
    to the centroid of the others, and all other logits move alike; the further the head is from a
    simplex, the more unlike, which may cost a retained image its label. Asked again of its own
    result, it removes the joint span.

    Differs: the logit of the forgotten class is masked; the paper's text leaves it open.
    """

    cite: ClassVar = CITE
    needs: ClassVar = frozenset({"forget", "head"})
    levels: ClassVar = frozenset({"class"})
    norms: ClassVar = "frozen"

    direction: str = knob(
        "head row", help="what stands for the class", choices=("head row", "class mean")
    )
    centring: str = knob(
        "auto",
        help="subtract the mean head row first; auto does where it is over 5 % of a row's length",
        choices=("auto", "on", "off"),
    )
    logit: str = knob(
        "mask",
        help="the forgotten class's logit: minus infinity, row and bias zero, or left alone",
        choices=("mask", "zero", "keep"),
    )
    strength: float = knob(
        1.0, 0.0, 1.0, "share of the direction that is taken out; at 0 nothing is changed"
    )

    def run(self, model, teacher, split, target, rng, on_step):
        if self.strength == 0:
            return "At strength 0 this is the original, forgotten logits included."
        assert isinstance(target, ForgetClasses)  # `levels` has seen to it
        labels, said = target.labels, None
        rows = head_rows(teacher, labels, self.centring)
        if self.direction == "class mean":
            rows = class_means(teacher, split.forget, labels)
            said = _doubt(common_share(rows, head_rows(teacher, labels, "on")))
        model.transform = projection(teacher, rows, labels, self.strength)
        settle(model, labels, self.logit)
        on_step(1, 1)
        return said


def _doubt(share: float) -> str | None:
    if share < COMMON:
        return None
    return (
        f"The class mean lies close to the common mean of all classes (cosine about {share:.2f}):"
        " without it the forgotten class falls on the origin, away from the others, and stays"
        " easy to tell."
    )
