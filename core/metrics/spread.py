"""Interval of a smooth function of moments, from how much each sample moves it."""

from collections.abc import Mapping

from torch import Tensor

from core.metrics.base import Measured, draws, percentiles

__support__ = True


def linearised(
    value: float, sway: Mapping[str, Tensor], seed: int, low: float, high: float
) -> Measured:
    """`value` with the bootstrap interval of its linear part, cut to [low, high].

    `sway` holds by group each sample's influence (mean zero): a resample moves the value, to
    first order, by the sum over groups of the mean influence drawn. This costs one pass, where
    a bootstrap of a CKA itself costs one a draw and reads too high (a resample has duplicates,
    and a CKA of fewer different rows is larger). The pseudo-values in `parts` average to
    `value`, so two models' gap can be taken sample by sample.
    """
    parts = {name: value + len(sway) * s.double() for name, s in sway.items()}
    below, above = percentiles(draws(list(parts.values()), seed))
    n = sum(len(p) for p in parts.values())
    # Rounding may leave the middle of the draws a hair off the value.
    below, above = min(below, value), max(above, value)
    return Measured(value, max(low, below), min(high, above), n, parts)
