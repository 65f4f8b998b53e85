"""Probes are fitted on sound splits, and fit what scikit-learn fits."""

import math

import numpy as np
import pytest
import torch
from seen import gaussians, probed, read
from torch import Tensor

from core.metrics.outputs import Outputs
from core.metrics.probe_linear_auroc import placements
from core.metrics.probe_mlp import mlp
from core.metrics.probing import Answers, Trials, ask, linear, rescale, splits, standardise

# Splits


@pytest.mark.parametrize(("forget", "rest"), [(10, 10), (11, 64), (13, 77), (15, 19), (300, 2700)])
def test_each_row_is_tested_once_or_twice_and_never_trained_on_then(forget, rest):
    trains, tests = splits(forget, rest, 0)
    times = torch.bincount(tests.flatten(), minlength=forget + rest)
    assert set(times.tolist()) <= {1, 2}
    for train, test in zip(trains, tests, strict=True):
        assert torch.cat([train, test]).sort().values.tolist() == list(range(forget + rest))


def test_splits_are_stratified_and_put_the_forget_class_first():
    trains, tests = splits(30, 200, 3)
    assert ((trains < 30).sum(1) == 21).all()
    assert ((tests < 30).sum(1) == 9).all()
    assert (trains[:, :21] < 30).all()


def test_another_seed_draws_other_splits():
    assert not torch.equal(splits(30, 200, 0)[1], splits(30, 200, 1)[1])


# Agreement with scikit-learn


def trials(model: Outputs) -> tuple[Trials, Tensor, Tensor]:
    x = model.at("penultimate", "test_forget", "test_retain").double()
    forget = len(model.y["test_forget"])
    trains, tests = splits(forget, len(x) - forget, 0)
    y = (trains[0] < forget).double()
    return Trials(*standardise(x, trains, tests), y, 0), trains, tests


def test_linear_probe_is_the_scaler_and_the_regression_of_the_protocol():
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    model = gaussians(0.4)
    x = model.at("penultimate", "test_forget", "test_retain").numpy() * 3 + 1
    model = probed(*torch.from_numpy(x).split([100, 400]))
    made, trains, tests = trials(model)
    protocol = make_pipeline(StandardScaler(), LogisticRegression(C=1.0, max_iter=1000))
    for k, scores in enumerate(linear(made)):
        rows = trains[k].numpy()
        protocol.fit(x[rows].astype(float), (rows < 100).astype(int))
        theirs = protocol.decision_function(x[tests[k].numpy()].astype(float))
        np.testing.assert_allclose(scores.numpy(), theirs, atol=1e-6)  # L-BFGS, nearly equal inputs


def score(scores: Tensor, tests: Tensor, forget: int) -> float:
    """Balanced accuracy over all splits together."""
    side = tests < forget
    hits = ((scores > 0) == side).double()
    return float(hits[side].mean() + hits[~side].mean()) / 2


def shell(n: int, m: int) -> Outputs:
    """A class within a ring of the rest: no line separates them."""
    rng = torch.Generator().manual_seed(1)
    rest = torch.randn(m, 2, generator=rng)
    rest *= 1 + 1 / rest.norm(dim=1, keepdim=True)
    return probed(0.4 * torch.randn(n, 2, generator=rng), rest)


def network(made: Trials, **settings) -> Tensor:
    """Scores of scikit-learn's network on the same trials (s m)."""
    from sklearn.neural_network import MLPClassifier

    found = []
    for train, test in zip(made.train, made.test, strict=True):
        net = MLPClassifier((128,), early_stopping=True, max_iter=1000, random_state=0, **settings)
        net.fit(train.numpy(), made.y.numpy())
        found.append(torch.from_numpy(np.asarray(net.predict_proba(test.numpy()))[:, 1]) - 0.5)
    return torch.stack(found)


@pytest.mark.parametrize("shift", [0.7, 1.0])
def test_mlp_probe_reads_what_scikit_learns_network_reads(shift):
    made, _, tests = trials(gaussians(shift, 300, 900))
    expected = score(network(made), tests, 300)
    assert expected > 0.8
    assert score(mlp(made), tests, 300) == pytest.approx(expected, abs=0.02)


def test_mlp_probe_reads_no_less_where_scikit_learns_network_stops_too_early():
    made, _, tests = trials(shell(150, 450))
    expected = score(network(made, learning_rate_init=0.01), tests, 150)
    assert expected > 0.6
    assert score(mlp(made), tests, 150) > expected - 0.02


def test_a_shell_is_seen_by_all_but_the_linear_probe():
    assert read("probe_linear", shell(100, 300)).value < 0.6
    for name in ("probe_norm", "probe_mlp", "probe_knn"):
        assert read(name, shell(100, 300)).value > 0.85


def test_placements_average_to_the_area_under_the_curve():
    from sklearn.metrics import roc_auc_score

    answers = ask(gaussians(0.3), "penultimate", 0, linear)
    # Ties count as half on both sides.
    answers = Answers(answers.scores.round(decimals=1), answers.rows, 100, 400)
    for scores, rows, placed in zip(answers.scores, answers.rows, placements(answers), strict=True):
        theirs = roc_auc_score((rows < 100).numpy(), scores.numpy())
        assert float(placed[rows < 100].mean()) == pytest.approx(theirs, abs=1e-12)
        assert float(placed[rows >= 100].mean()) == pytest.approx(theirs, abs=1e-12)


def test_auroc_interval_is_as_wide_as_a_bootstrap_of_the_area():
    model, rng = gaussians(0.3), np.random.default_rng(0)
    taken = read("probe_linear_auroc", model)
    answers = ask(model, "penultimate", 0, linear)
    widths = []
    for scores, rows in zip(answers.scores, answers.rows, strict=True):
        forget, rest = scores[rows < 100], scores[rows >= 100]
        wins = (forget[:, None] > rest[None, :]).double().numpy()
        counts = [rng.multinomial(n, np.full(n, 1 / n), 1000) / n for n in wins.shape]
        areas = (counts[0] @ wins * counts[1]).sum(1)
        widths.append(np.ptp(np.percentile(areas, [2.5, 97.5])))
    # One split tests 30 % of the rows, all splits together each row: narrower by sqrt(0.3).
    expected = math.sqrt(0.3) * np.mean(widths)
    assert taken.high - taken.low == pytest.approx(expected, rel=0.15)  # s.e. of five widths


def test_a_feature_that_is_constant_in_training_is_ignored_in_the_test():
    train, test = torch.zeros(1, 4, 2), torch.ones(1, 2, 2)
    train[0, :, 1] = torch.tensor([-1.0, -1.0, 1.0, 1.0])
    fitted, scored = rescale(train, test)
    assert fitted[0, :, 1].tolist() == [-1, -1, 1, 1]
    assert scored[0].tolist() == [[0, 1], [0, 1]]
