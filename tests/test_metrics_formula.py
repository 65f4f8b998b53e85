"""Readings of features: closed forms and invariances of Phi, RUS, Fisher and rMIA."""

import dataclasses
import itertools
import math

import pytest
import seen
import torch
from seen import read, rng

from core.geometry.align import cka
from core.metrics import METRICS
from core.metrics.base import Unavailable
from core.metrics.fisher import fisher
from core.metrics.outputs import Outputs

ORIGINAL, UNLEARNED, GOLD = (seen.outputs(m) for m in range(3))


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=rng(seed), dtype=torch.float64)


def test_phi_is_what_cka_leaves():
    z, o = UNLEARNED.at("penultimate", "forget"), ORIGINAL.at("penultimate", "forget")
    found = read("phi_forget_original", UNLEARNED, ORIGINAL).value
    assert found == pytest.approx(1 - cka(z, o), abs=1e-12)


@pytest.mark.parametrize(("name", "reference"), [("rus_o", ORIGINAL), ("rus_r", GOLD)])
def test_rus_is_the_harmonic_mean(name, reference):
    phi_name = "phi_forget_original" if name == "rus_o" else "phi_forget_gold"
    kept_name = "cka_retain_original" if name == "rus_o" else "cka_retain_gold"
    phi, kept = (read(n, UNLEARNED, reference).value for n in (phi_name, kept_name))
    value = read(name, UNLEARNED, reference).value
    assert value == pytest.approx(2 * phi * kept / (phi + kept), abs=1e-12)
    assert value <= min(2 * phi, 2 * kept)


def test_the_original_has_rus_o_nought_and_gold_has_rus_r_one():
    assert read("rus_o", ORIGINAL, ORIGINAL).value == pytest.approx(0, abs=1e-6)
    assert read("rus_r", GOLD, GOLD).value == pytest.approx(1, abs=1e-6)


def test_rus_ignores_a_rotation_of_the_features():
    turned = seen.outputs(1, transform=True)
    for name, reference in (("rus_o", ORIGINAL), ("rus_r", GOLD)):
        same = read(name, turned, reference).value
        # Float32 features: seven digits.
        assert same == pytest.approx(read(name, UNLEARNED, reference).value, abs=1e-5)


def test_an_edit_of_the_head_alone_moves_no_reading_of_the_features():
    logits = {
        name: z.index_fill(1, torch.tensor(0), -torch.inf) for name, z in ORIGINAL.logits.items()
    }
    masked = dataclasses.replace(ORIGINAL, logits=logits)
    assert read("forget_accuracy_test", masked).value == 0
    assert read("rus_o", masked, ORIGINAL).value == pytest.approx(0, abs=1e-6)
    for tap in ORIGINAL.taps:
        metric = METRICS["cka_depth_original"]()
        assert metric.measure(masked, ORIGINAL, tap, 0).value == pytest.approx(1, abs=1e-12)


def test_noise_on_few_samples_is_undefined_and_not_a_number():
    shown = [torch.randn(4, 30, generator=rng(s)) for s in range(9)]
    model = dataclasses.replace(
        ORIGINAL, y={"forget": torch.zeros(4)}, ids={"forget": torch.arange(4)}
    )
    said = []
    for a, b in itertools.pairwise(shown):
        one, two = (
            dataclasses.replace(model, features={"forget": {"penultimate": z}}) for z in (a, b)
        )
        try:
            assert 0 < read("cka_forget_gold_debiased", one, two).value <= 1
        except Unavailable as why:
            said.append(str(why))
    assert said
    assert all(s.startswith("undefined: ") for s in said)


def test_fisher_of_two_gaussians():
    d, sigma, far = 16, 2.0, torch.linspace(0, 1, 16).double()
    f, r = (sigma * normal(20_000, d, seed=s) + side * far / 2 for s, side in ((0, 1), (1, -1)))
    expected = float(far @ far) / (2 * d * sigma**2)
    value, *sway = fisher(f, r)
    error = math.hypot(*(float(s.std()) / 20_000**0.5 for s in sway))
    assert 0 < error < 0.1 * expected
    assert abs(value - expected) < 3 * error + d / (20_000 * d)  # noise, and the means' own bias


def test_fisher_ignores_rotation_shift_and_scale():
    f, r = normal(30, 6) + 1, normal(50, 6, seed=1)
    q = torch.linalg.qr(normal(6, 6, seed=2))[0]
    moved = fisher(3 * f @ q + 5, 3 * r @ q + 5)[0]
    assert moved == pytest.approx(fisher(f, r)[0], abs=1e-12)  # float64 rounding
    assert fisher(f, f)[0] == 0


def test_fisher_takes_the_trace_however_few_the_samples():
    f, r = normal(5, 100) + 1, normal(7, 100, seed=1)
    trace = f.var(0).sum() + r.var(0).sum()
    gap = (f.mean(0) - r.mean(0)).square().sum()
    assert fisher(f, r)[0] == pytest.approx(float(gap / trace), abs=1e-12)


def leaky(leak: float, *, shuffle: bool = False, train: int = 1500) -> Outputs:
    """Two classes; every training image's features are moved by `leak` standard deviations."""
    model = seen.outputs(0, classes=2, train=train, test=1500, seconds=None)
    draw = rng(3)
    features = {
        name: {"penultimate": torch.randn(len(y), 8, generator=draw) + leak * ("test" not in name)}
        for name, y in model.y.items()
    }
    if shuffle:
        mixed = torch.cat([f["penultimate"] for f in features.values()])
        mixed = mixed[torch.randperm(len(mixed), generator=draw)]
        parts = mixed.split([len(f["penultimate"]) for f in features.values()])
        features = {n: {"penultimate": p} for n, p in zip(features, parts, strict=True)}
    return dataclasses.replace(model, taps=("penultimate",), features=features)


@pytest.mark.parametrize("model", [leaky(0.0), leaky(1.0, shuffle=True)], ids=["same", "shuffled"])
def test_rmia_guesses_where_nothing_leaks(model):
    # 1,500 members: a standard error of 1.3 %; the specification allows 3 %.
    assert read("rmia", model).value == pytest.approx(0.5, abs=0.03)
    assert read("rmia_fpr", model).value == pytest.approx(0.5, abs=0.03)


def test_rmia_finds_a_leak():
    # A shift of 1 in each of 8 features: Phi(sqrt(8)/2) of either side are told rightly.
    assert read("rmia", leaky(1.0)).value == pytest.approx(0.921, abs=0.02)
    assert read("rmia_fpr", leaky(1.0)).value == pytest.approx(0.079, abs=0.02)


def test_rmia_is_not_told_membership_by_the_class():
    model = seen.outputs(0, classes=3, train=900, test=900, noise=0.1)
    some = torch.arange(0, 1800, 9)  # a sample, as an audit has it
    retained = {tap: z[some] for tap, z in model.features["retain"].items()}
    thin = dataclasses.replace(
        model,
        features={**model.features, "retain": retained},
        y={**model.y, "retain": model.y["retain"][some]},
        ids={**model.ids, "retain": model.ids["retain"][some]},
    )
    # 900 members: a standard error of 1.7 %. Judged by class alone, all would be called members.
    assert read("rmia", thin).value == pytest.approx(0.5, abs=0.05)


def test_rmia_judges_forgotten_images_of_every_class_for_an_instance_target():
    model = seen.outputs(0, instances=30)
    assert read("rmia", model).n == 30
    assert read("rmia_fpr", model).n == len(model.y["test_retain"])
