"""Membership attacks on answers: formulas by other code, leaks that must be told, and chance."""

import dataclasses
import math
from itertools import product

import numpy as np
import pytest
import seen
import torch
from scipy.stats import norm
from seen import read, rng
from torch import Tensor

from core.metrics import METRICS, svc_attack
from core.metrics.base import Unavailable
from core.metrics.outputs import Outputs
from core.metrics.ratio_mia import A, beaten
from core.metrics.svc_mia_confidence import confidence
from core.metrics.svc_mia_entropy import entropy
from core.metrics.svc_mia_m_entropy import m_entropy
from core.metrics.u_mia import judged

SVC = ("svc_mia_confidence", "svc_mia_entropy", "svc_mia_m_entropy")
BASE = seen.outputs(0, classes=2, train=400, test=400)


def sure(model: Outputs = BASE, *, spread: float = 1.0, seed: int = 0, **means: float) -> Outputs:
    """Answers of two classes whose logit margins for the true one are normal about these means."""
    draw, logits = rng(seed), {}
    for name, y in model.y.items():
        margin = means[name] + spread * torch.randn(len(y), generator=draw, dtype=torch.float64)
        side = 2.0 * torch.nn.functional.one_hot(y, 2) - 1
        logits[name] = side * margin[:, None] / 2
    return dataclasses.replace(model, logits=logits)


def shown(forget: float, retain: float, unseen: float, unseen_retain: float, **rest) -> Outputs:
    names = ("forget", "retain", "test_forget", "test_retain")
    means = dict(zip(names, (forget, retain, unseen, unseen_retain), strict=True))
    return sure(**means, **rest)


# SVC-MIA


def some(n: int = 30, k: int = 5, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Probabilities and labels."""
    draw = rng(seed)
    p = (2 * torch.randn(n, k, generator=draw, dtype=torch.float64)).softmax(1)
    return p, torch.randint(k, (n,), generator=draw)


def test_the_three_statistics_are_their_formulas_sample_by_sample():
    p, y = some()
    for row, label, got in zip(p.tolist(), y.tolist(), m_entropy(p, y).tolist(), strict=True):
        others = sum(q * math.log(1 - q) for k, q in enumerate(row) if k != label)
        right = row[label]
        assert got == pytest.approx(-(1 - right) * math.log(right) - others, abs=1e-12)
    expected = [-sum(q * math.log(q) for q in row) for row in p.tolist()]
    assert entropy(p, y).tolist() == pytest.approx(expected, abs=1e-12)
    assert confidence(p, y).tolist() == [row[c] for row, c in zip(p.tolist(), y, strict=True)]


def test_m_entropy_alone_tells_a_sure_wrong_answer_from_a_sure_right_one():
    p, y = torch.tensor([[1 - 1e-9, 1e-9]] * 2, dtype=torch.float64), torch.tensor([0, 1])
    right, wrong = m_entropy(p, y).tolist()
    assert right < 1e-6
    assert wrong > 20
    assert entropy(p, y)[0] == entropy(p, y)[1]


@pytest.mark.parametrize("name", SVC)
def test_svc_mia_reads_the_fraction_of_members_not_of_others(name):
    member, other = shown(4, 4, 0, 0), shown(0, 4, 0, 0)
    assert read(name, member).value > 0.85
    assert read(name, other).value < 0.35


@pytest.mark.parametrize("name", SVC)
def test_svc_mia_is_trained_on_retained_images_alone(name):
    model = shown(2, 4, 0, 0)
    flipped = {**model.logits, "test_forget": -model.logits["test_forget"]}
    other = dataclasses.replace(model, logits=flipped)
    assert read(name, model).value == read(name, other).value


def test_the_attacker_is_trained_on_as_many_members_as_others_and_not_too_many(monkeypatch):
    sizes = []

    def spy(known, asked):
        sizes.append((len(known), len(asked)))
        return np.zeros(len(asked))

    monkeypatch.setattr(svc_attack, "_attack", spy)
    monkeypatch.setattr(svc_attack, "TRAINED", 60)
    read("svc_mia_confidence", shown(2, 4, 0, 0, seed=5))
    monkeypatch.setattr(svc_attack, "TRAINED", 1000)
    read("svc_mia_confidence", shown(2, 4, 0, 0, seed=6))
    assert sizes == [(120, 400), (800, 400)]


# U-MIA


def test_u_mia_tells_an_overfitted_forget_set_as_well_as_can_be():
    # Margins of one spread: the best threshold lies half-way, and the loss is monotone in them.
    value = read("u_mia", shown(4, 0, 2, 0)).value
    assert value == pytest.approx(norm.cdf(1), abs=0.04)  # 800 images: standard error 1.3 %


@pytest.mark.parametrize("name", ["u_mia", "ratio_mia"])
def test_a_class_that_is_answered_otherwise_is_no_membership(name):
    model, gold = shown(-3, 4, -3, 4), shown(-4, 4, -4, 4, seed=1)
    reference = gold if METRICS[name].against else None
    assert read(name, model, reference).value == pytest.approx(0.5, abs=0.08)


@pytest.mark.parametrize("name", ["u_mia", "ratio_mia"])
def test_gold_against_gold_is_at_chance_and_the_original_is_not(name):
    gold, other, original = shown(0, 4, 0, 2), shown(0, 4, 0, 2, seed=1), shown(3, 4, 0, 2, seed=2)
    reference = other if METRICS[name].against else None
    # 200 images or more a side: a standard error of 3 % at most.
    assert read(name, gold, reference).value == pytest.approx(0.5, abs=0.08)
    assert read(name, original, reference).value > 0.8


def test_single_images_are_compared_with_unseen_ones_of_every_class():
    model = seen.outputs(0, classes=2, train=300, test=200, instances=150)
    model = sure(model, forget=3.0, retain=3.0, test_forget=0.0, test_retain=0.0)
    assert read("u_mia", model).value > 0.85
    gold = sure(model, forget=0.0, retain=3.0, test_forget=0.0, test_retain=0.0, seed=1)
    assert read("ratio_mia", model, gold).value > 0.85


def test_u_mia_of_answers_that_are_all_alike_is_a_half():
    alike = np.stack([np.full(40, 3 + 1e-9), np.full(40, 3.0)])  # but for rounding
    assert judged(alike, np.arange(40) % 10).mean() == 0.5
    masked = {n: torch.tensor([[-torch.inf, 0.0]]).repeat(len(y), 1) for n, y in BASE.y.items()}
    assert read("u_mia", dataclasses.replace(BASE, logits=masked)).value == 0.5


# Ratio MIA


def test_ratio_mia_is_the_published_ratio_pair_by_pair():
    model, gold = shown(1, 2, 0, 0, seed=3), shown(0, 2, 0, 0, seed=4)

    def p(one, name):
        return one.logits[name].softmax(1)[torch.arange(len(one.y[name])), one.y[name]].tolist()

    def ratio(name):
        pairs = zip(p(model, name), p(gold, name), strict=True)
        return [mine / (((1 + A) * out + (1 - A)) / 2) for mine, out in pairs]

    members, unseen = ratio("forget"), ratio("test_forget")  # ids rise with the rows
    others, population = unseen[0::2], unseen[1::2]

    def score(x):
        return sum(x / z > 1 for z in population) / len(population)

    inside, outside = [score(x) for x in members], [score(x) for x in others]
    wins = [(a > b) + 0.5 * (a == b) for a, b in product(inside, outside)]
    got = read("ratio_mia", model, gold)
    assert got.value == pytest.approx(sum(wins) / len(wins), abs=1e-12)
    assert got.n == len(inside) + len(outside)


def test_ratio_mia_sees_through_images_that_are_hard_for_every_model():
    hard = {n: torch.linspace(-4, 4, len(y)) for n, y in BASE.y.items()}
    lifted = {"forget": 0.7, "retain": 0.7, "test_forget": 0.0, "test_retain": 0.0}

    def answers(lift: float, seed: int) -> Outputs:
        draw, logits = rng(seed), {}
        for n, y in BASE.y.items():
            noise = 0.1 * torch.randn(len(y), generator=draw)
            margin = hard[n] + lift * lifted[n] + noise
            logits[n] = (2.0 * torch.nn.functional.one_hot(y, 2) - 1) * margin[:, None] / 2
        return dataclasses.replace(BASE, logits=logits)

    model, gold = answers(1.0, 0), answers(0.0, 1)
    assert read("ratio_mia", model, gold).value > read("u_mia", model).value + 0.05


def test_a_tie_is_half_a_win():
    assert beaten(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 1.0, 3.0])).tolist() == [
        1 / 3,
        2 / 3,
    ]


def test_ratio_mia_needs_a_population():
    few = seen.outputs(1, test=4)
    with pytest.raises(Unavailable, match="20 unseen images"):
        read("ratio_mia", few, seen.outputs(2, test=4))
