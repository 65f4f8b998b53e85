"""Shots: a few examples, for methods that may read only so many."""

import torch

from core.data.examples import Examples

__support__ = True


def sample(examples: Examples, count: int, rng: torch.Generator) -> Examples:
    """`count` of the examples, drawn at random; all of them where there are fewer."""
    order = torch.randperm(len(examples), generator=rng)
    return examples[order[:count].to(examples.y.device)]


def balanced(examples: Examples, count: int, rng: torch.Generator) -> Examples:
    """`count` of the examples, drawn at random, of each class as many as of any other.

    A class may have one more than another where `count` is no multiple, and fewer where it has no
    more.
    """
    order = torch.randperm(len(examples), generator=rng)
    y = examples.y.cpu()[order]
    rank = torch.zeros_like(y)
    for label in y.unique():
        own = y == label
        rank[own] = torch.arange(int(own.sum()))
    return examples[order[rank.argsort(stable=True)[:count]].to(examples.y.device)]
