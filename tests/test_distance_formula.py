"""Distances to gold's answers: each by other code, and the values that are known."""

import dataclasses
import math

import numpy as np
import pytest
import seen
import torch
from scipy.spatial.distance import jensenshannon
from scipy.stats import binom
from seen import read, rng
from torch import Tensor

from core.metrics import METRICS
from core.metrics.base import Unavailable
from core.metrics.jensen_shannon import js
from core.metrics.outputs import Outputs
from core.metrics.stein_queries import MOST, queries
from core.metrics.wcps import quality

ORIGINAL, UNLEARNED, GOLD = (seen.outputs(m) for m in range(3))


def saying(model: Outputs, **changed: Tensor) -> Outputs:
    return dataclasses.replace(model, logits={**model.logits, **changed})


@pytest.mark.parametrize(("name", "part"), [("js_forget", "forget"), ("js_retain", "retain")])
def test_js_is_the_mean_over_samples_of_the_squared_distance(name, part):
    p, q = (m.logits[part].double().softmax(1).numpy() for m in (GOLD, UNLEARNED))
    expected = np.mean([jensenshannon(a, b) ** 2 for a, b in zip(p, q, strict=True)])
    assert 0.01 < expected < 0.6
    # Probabilities are kept above 1e-10.
    assert read(name, UNLEARNED, GOLD).value == pytest.approx(expected, abs=1e-7)
    assert read(name, GOLD, UNLEARNED).value == pytest.approx(expected, abs=1e-7)


def test_js_of_answers_without_a_common_class_is_log_2():
    z = torch.tensor([[60.0, 0.0]])
    assert float(js(z, -z)) == pytest.approx(math.log(2), abs=1e-7)
    assert METRICS["js_forget"].high == METRICS["js_retain"].high == math.log(2)
    assert float(js(z, z)) == 0


@pytest.mark.parametrize(("kappa", "said"), [(0.01, 265), (0.05, 53), (0.5, 5.3)])
def test_the_stein_bound_has_its_known_values(kappa, said):
    assert queries(kappa) == pytest.approx(said, rel=0.003)  # three digits are given


def test_the_stein_bound_is_cut_where_models_are_equal():
    assert queries(0.0) == MOST == read("stein_queries", GOLD, GOLD).value
    kl = read("kl_test", UNLEARNED, GOLD).value
    assert read("stein_queries", UNLEARNED, GOLD).value == pytest.approx(queries(kl), abs=1e-12)
    assert queries(kl) < 100


@pytest.mark.parametrize(("p", "q"), [(0.5, 0.7), (0.1, 0.3), (0.9, 0.5)])
def test_no_test_beats_the_stein_bound(p, q):
    """`n` answers of a coin: the likelihood-ratio test counts heads and draws one line."""
    kappa = p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q))

    def enough(n):
        heads = np.arange(n + 1)
        up, down = binom.cdf(heads, n, p), binom.cdf(heads, n, q)
        errors = (1 - up, down) if q > p else (up, 1 - down)
        return bool(((errors[0] <= 0.05) & (errors[1] <= 0.05)).any())

    least = next(n for n in range(1, 500) if enough(n))
    assert least >= queries(kappa)
    assert least < 2.5 * queries(kappa)  # and it is not idle


def accuracy_gaps(model: Outputs, gold: Outputs) -> list[float]:
    names = ("forget_accuracy_train", "retain_accuracy_train", "retain_accuracy_test")
    return [read(n, model).value - read(n, gold).value for n in names]


def test_tow_and_the_average_gap_are_made_of_the_readings_they_name():
    gaps = accuracy_gaps(UNLEARNED, GOLD)
    assert read("tow", UNLEARNED, GOLD).value == pytest.approx(
        math.prod(1 - abs(g) for g in gaps), abs=1e-12
    )
    attack = [read("svc_mia_confidence", m).value for m in (UNLEARNED, GOLD)]
    gaps.append(attack[0] - attack[1])
    expected = sum(map(abs, gaps)) / 4
    assert read("average_gap", UNLEARNED, GOLD).value == pytest.approx(expected, abs=1e-12)


def test_opposite_gaps_do_not_cancel():
    """Gold names what the model does not and the other way round."""
    draw = rng()
    right = {
        n: torch.nn.functional.one_hot(y, 4) * (1 + torch.rand(len(y), 1, generator=draw))
        for n, y in GOLD.y.items()
    }
    wrong = {n: -z for n, z in right.items()}
    gold = saying(GOLD, **right | {"forget": wrong["forget"]})
    model = saying(GOLD, **wrong | {"forget": right["forget"]})
    assert read("tow", model, gold).value == 0
    assert read("average_gap", model, gold).value > 0.7


def test_a_model_that_guesses_has_a_tow_near_nought():
    right = {n: torch.nn.functional.one_hot(y, 4).float() for n, y in GOLD.y.items()}
    gold = saying(GOLD, **right)
    draw = rng()
    guess = {n: torch.randn(z.shape, generator=draw) for n, z in right.items()}
    assert read("tow", saying(GOLD, **guess), gold).value < 0.2


def test_the_interval_of_tow_is_the_bootstraps():
    got = read("tow", UNLEARNED, GOLD)
    said = {
        n: [(m.logits[n].argmax(1) == m.y[n]).double().numpy() for m in (UNLEARNED, GOLD)]
        for n in ("forget", "retain", "test_retain")
    }
    draw, found = np.random.default_rng(1), []
    for _ in range(1000):
        rows = {n: draw.integers(len(a), size=len(a)) for n, (a, _) in said.items()}
        gaps = [abs((a - b)[rows[n]].mean()) for n, (a, b) in said.items()]
        found.append(math.prod(1 - g for g in gaps))
    assert [got.low, got.high] == pytest.approx(np.percentile(found, [2.5, 97.5]), abs=0.02)


def test_agreement_counts_equal_answers_right_or_wrong():
    sets = {"agreement_forget": ("forget",), "agreement_test": ("test_forget", "test_retain")}
    for name, parts in sets.items():
        a, b = (torch.cat([m.logits[n] for n in parts]).argmax(1) for m in (UNLEARNED, GOLD))
        got = read(name, UNLEARNED, GOLD)
        assert got.value == pytest.approx(float((a == b).double().mean()), abs=1e-12)
        assert 0.1 < got.value < 1


def test_an_undecided_answer_agrees_with_none():
    flat = torch.zeros_like(GOLD.logits["forget"])
    assert read("agreement_forget", saying(GOLD, forget=flat), GOLD).value == 0
    with pytest.raises(Unavailable, match="not finite"):
        read("agreement_forget", saying(GOLD, forget=flat + torch.nan), GOLD)


def test_activation_distance_is_the_mean_length_of_the_difference():
    p, q = (m.logits["forget"].double().softmax(1).numpy() for m in (GOLD, UNLEARNED))
    expected = np.mean([math.dist(a, b) for a, b in zip(p, q, strict=True)])
    got = read("activation_distance", UNLEARNED, GOLD).value
    assert got == pytest.approx(expected, abs=1e-12)
    sure = 90.0 * torch.eye(4)[GOLD.y["forget"]]
    other = saying(GOLD, forget=sure.roll(1, 1))
    assert read("activation_distance", other, saying(GOLD, forget=sure)).value == pytest.approx(
        math.sqrt(2), abs=1e-9
    )


def test_doing_nothing_is_further_from_gold_than_a_second_gold_is():
    twin = saying(GOLD, **{n: z + 0.01 * z.sin() for n, z in GOLD.logits.items()})
    for name in ("js_forget", "js_retain", "activation_distance", "average_gap"):
        assert read(name, ORIGINAL, GOLD).value > read(name, twin, GOLD).value, name
    for name in ("tow", "agreement_forget", "agreement_test", "stein_queries", "wcps"):
        assert read(name, ORIGINAL, GOLD).value < read(name, twin, GOLD).value, name


# WCPS


def by_hand(mine: list[np.ndarray], gold: list[np.ndarray]) -> float:
    """The published score, attack by attack and threshold by threshold."""
    ranges, best = [(0.0, 2.5), (-2.5, 10.0)], 0.0
    for m, g, (low, high) in zip(mine, gold, ranges, strict=True):
        for mark in np.linspace(low, high, 51):
            for pos, neg in ((m, g), (g, m)):
                pos, neg = np.clip(pos, low, high), np.clip(neg, low, high)
                fpr, fnr = np.mean(neg >= mark), 1 - np.mean(pos >= mark)
                if fpr == fnr == 0:
                    fq = 0.0
                elif max(fpr, fnr) >= 1 - 1e-5:
                    fq = 1.0
                else:
                    fpr, fnr = max(fpr, 1e-10), max(fnr, 1e-10)
                    sides = (
                        np.log(1 - 1e-5 - fpr) - np.log(fnr),
                        np.log(1 - 1e-5 - fnr) - np.log(fpr),
                    )
                    fq = 2 ** -max(0.0, min(sides))
                best = max(best, 1 - fq)
    return 1 - best


def by_hand_statistics(model: Outputs) -> list[np.ndarray]:
    z = model.logits["forget"].double()
    warm, top = (z / 2).softmax(1).numpy(), z.softmax(1).max(1).values.numpy()
    return [-(warm * np.log(warm)).sum(1), np.log(top) - np.log(1 - top)]


@pytest.mark.parametrize(("model", "gold"), [(0, 2), (1, 2), (3, 1)])
def test_wcps_is_the_published_worst_case(model, gold):
    one, two = (seen.outputs(m, train=100) for m in (model, gold))
    cool = [  # so that no 1 - p_max is rounded to nothing in the code written out here
        dataclasses.replace(o, logits={n: z.clamp(-8, 8) for n, z in o.logits.items()})
        for o in (one, two)
    ]
    got = read("wcps", *cool).value
    assert 0 < got < 1
    assert got == pytest.approx(by_hand(*map(by_hand_statistics, cool)), abs=1e-9)


def test_wcps_is_nought_where_one_threshold_tells_all_and_one_for_the_same_model():
    def sure(low: float, seed: int) -> Outputs:
        n = len(GOLD.y["forget"])
        margin = low + 2 * torch.rand(n, generator=rng(seed))
        return saying(GOLD, forget=torch.stack([margin, *torch.zeros(3, n)], 1))

    assert read("wcps", sure(7, 0), sure(1, 1)).value == 0
    assert read("wcps", sure(1, 1), sure(1, 1)).value == 1
    assert 0 < read("wcps", sure(2, 2), sure(1, 1)).value < 1


def test_quality_of_an_attack_by_hand():
    expected = 2 ** -math.log((1 - 1e-5 - 0.2) / 0.3)  # the smaller of the two logarithms
    assert float(quality(np.array(0.2), np.array(0.3))) == pytest.approx(expected, abs=1e-12)
    assert float(quality(np.array(1.0), np.array(0.0))) == 1
    assert float(quality(np.array(0.0), np.array(0.0))) == 0
