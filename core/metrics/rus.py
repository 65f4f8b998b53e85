"""Representation unlearning score, shared by its two forms."""

from core.metrics.base import Measured
from core.metrics.outputs import Outputs
from core.metrics.similarity import pair, sway
from core.metrics.spread import linearised

__support__ = True


def rus(model: Outputs, reference: Outputs | None, tap: str, seed: int, *, away: bool) -> Measured:
    """Harmonic mean of Phi on the forget set and CKA on the retain set, both of the training set.

    Phi is 1 - CKA where the model should move `away` from the reference, else CKA. Zero where
    both are zero.

    Raises:
        Unavailable: one of the two is undefined, and why.
    """
    phi, moved = sway(*pair(model, reference, tap, "forget"))
    if away:
        phi, moved = 1 - phi, -moved
    kept, held = sway(*pair(model, reference, tap, "retain"))
    total = phi + kept
    if total <= 0:
        return linearised(0.0, {"forget": 0 * moved, "retain": 0 * held}, seed, 0.0, 1.0)
    value = 2 * phi * kept / total
    slope_phi, slope_kept = 2 * (kept / total) ** 2, 2 * (phi / total) ** 2
    swing = {"forget": slope_phi * moved, "retain": slope_kept * held}
    return linearised(value, swing, seed, 0.0, 1.0)
