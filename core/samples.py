"""Samples: the rows on which every model of an audit is looked at, the same for all."""

import torch

from core.data.examples import Dataset, Examples
from core.data.split import split
from core.data.targets import ForgetTarget

MOST = {"forget": 2000, "retain": 3000}
"""Training rows; the retain set is a sample, enough for probes and class means."""
MOST_TEST = 10_000
SEED = 0


def parts(data: Dataset, target: ForgetTarget) -> dict[str, Examples]:
    """The sets by name: forget, retain, test_forget, test_retain, and the external set's two."""
    sets = split(data, target)
    found = {n: getattr(sets, n) for n in ("forget", "retain", "test_forget", "test_retain")}
    if data.external is not None:
        gone = target.mask(data.external, False)
        found["external_forget"] = data.external[gone]
        found["external_retain"] = data.external[~gone]
    return {name: sample(part, MOST.get(name, MOST_TEST)) for name, part in found.items()}


def sample(examples: Examples, most: int) -> Examples:
    """At most `most` of them, drawn with a fixed seed, in their order."""
    if len(examples) <= most:
        return examples
    rng = torch.Generator().manual_seed(SEED)
    return examples[torch.randperm(len(examples), generator=rng)[:most].sort().values]
