"""SSD, Fisher forgetting, Kodge SVD and LEACE: methods that compute a result without training."""

from functools import cache
from typing import Any

import pytest
import torch
import worlds
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score

from core import weights
from core.data.examples import join
from core.models import MODELS, leace
from core.models.classifier import Classifier
from core.unlearners import UNLEARNERS
from core.unlearners.base import Unlearned
from core.unlearners.fisher import FisherForgetting, information
from core.unlearners.kodge_svd import importance, moments
from core.unlearners.ssd import importance as squared_slopes

U = worlds.CLASSES.index("two")
HERE: dict[str, dict[str, Any]] = {
    "ssd": {"alpha": 3.0, "batch": 32},
    "fisher": {"alpha": 1e-6, "images": 60},
    "kodge_svd": {"alpha_forget": 10.0},
    "leace": {},
}
"""Settings of this world, whose sets are a fifteenth of what the defaults are for."""


@cache
def ran(name: str, text: str = "class:two", **settings: Any) -> Unlearned:
    method = UNLEARNERS[name](**(HERE[name] | settings))
    return method(worlds.original(), worlds.parts(text), worlds.target(text))


def on(model: Classifier, name: str) -> float:
    return worlds.accuracy(model, getattr(worlds.parts(), name))


def unlike(a: Classifier, b: Classifier) -> set[str]:
    """Names of the tensors in which two models differ by as much as a bit."""
    mine, other = a.state_dict(), b.state_dict()
    return {n for n in mine.keys() | other.keys() if n not in mine or n not in other
            or not torch.equal(mine[n], other[n])}  # fmt: skip


@pytest.mark.parametrize("name", HERE)
def test_it_forgets_the_class_and_keeps_the_others(name):
    """Without training none of them forgets fully on so little data."""
    model, original = ran(name).model, worlds.original()
    assert on(model, "test_forget") <= 0.35
    assert on(model, "test_retain") >= on(original, "test_retain") - 0.1


# ---- SSD


def test_ssd_lets_no_weight_grow_and_touches_only_what_it_selects():
    before, after = worlds.original(), ran("ssd").model
    changed = 0
    for v, w in zip(before.parameters(), after.parameters(), strict=True):
        assert (w.abs() <= v.abs()).all()
        assert (w * v >= 0).all()
        changed += int((w != v).sum())
    assert f"{changed} of" in ran("ssd").note


def test_ssd_scales_a_weight_by_the_ratio_of_its_importances():
    model = ran("ssd", strength=0.5, batch=1024).model
    split, start = worlds.parts(), worlds.original()
    everything = join(split.forget, split.retain)
    rng = torch.Generator()
    forget, whole = (squared_slopes(start, part, 1024, rng) for part in (split.forget, everything))
    for v, w, f, d in zip(start.parameters(), model.parameters(), forget, whole, strict=True):
        expected = torch.where(f > 3.0 * d, v * (0.5 * d / f).clamp(max=1), v)
        # The gradients of one batch in two orders agree to float32; a threshold may tip.
        assert ((w - expected).abs() > 1e-4).float().mean() < 0.001


def test_a_large_alpha_leaves_the_original_as_it_is():
    assert not unlike(ran("ssd", alpha=1e6).model, worlds.original())


def test_ssd_selects_fewer_weights_the_larger_alpha_is():
    counts = [int(ran("ssd", alpha=a).note.split()[0]) for a in (1.0, 2.0, 3.0, 10.0)]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] > counts[-1]


# ---- Fisher


def test_the_information_is_the_expected_squared_slope_of_the_log_probability():
    model = worlds.original().double()
    x = worlds.parts().retain[:3].float().x.double()
    by_name = information(model, x)
    names, params = zip(*model.named_parameters(), strict=True)
    expected = {n: torch.zeros_like(w) for n, w in zip(names, params, strict=True)}
    for image in x:
        logs = model(image[None])[0].log_softmax(0)
        for log in logs:
            slopes = torch.autograd.grad(log, params, retain_graph=True)
            for n, s in zip(names, slopes, strict=True):
                expected[n] += log.exp().detach() * s.square()
    for n in names:
        torch.testing.assert_close(by_name[n], expected[n], rtol=1e-8, atol=1e-12)


def test_without_noise_and_with_the_row_kept_nothing_happens():
    assert not unlike(ran("fisher", alpha=0.0, row="keep").model, worlds.original())


def test_without_noise_only_the_forgotten_row_moves():
    model, original = ran("fisher", alpha=0.0).model, worlds.original()
    assert unlike(model, original) == {"head.weight", "head.bias"}
    others = [i for i in range(6) if i != U]
    assert torch.equal(model.head.weight[others], original.head.weight[others])
    # Sixty-four draws of variance 1e-3: five standard errors about the deviation.
    assert model.head.weight[U].std().item() == pytest.approx(1e-3**0.5, rel=0.45)


def test_noise_is_larger_where_there_is_less_information():
    method = FisherForgetting(alpha=1e-6)
    fisher = 0.01 + torch.rand(50, 1, generator=torch.Generator().manual_seed(0))
    order = [v.flatten().argsort() for v in (fisher, -method.variance("body", fisher))]
    assert torch.equal(*order)
    head, body = (method.variance(n, torch.full((2, 3), 1.0)) for n in ("head.weight", "body"))
    torch.testing.assert_close(head, 10 * body)
    capped = method.variance("body", torch.zeros(2, 3))
    torch.testing.assert_close(capped, torch.full((2, 3), 1e-6 * 1e3))


def test_single_images_lose_no_row():
    model = ran("fisher", "random:20", alpha=0.0).model
    assert not unlike(model, worlds.original())


# ---- Kodge


def test_an_alpha_of_zero_projects_nothing():
    assert not unlike(ran("kodge_svd", alpha_forget=0.0).model, worlds.original())


def test_only_layers_with_a_weight_matrix_move():
    moved = unlike(ran("kodge_svd").model, worlds.original())
    assert moved
    assert all(n.endswith("weight") and worlds.original().state_dict()[n].ndim > 1 for n in moved)


def test_an_importance_has_the_shares_of_energy_as_its_eigenvalues():
    energy = torch.tensor([1.0, 2.0, 5.0]).double()
    q = torch.linalg.qr(torch.randn(3, 3, generator=torch.Generator().manual_seed(0)).double()).Q
    r = energy / energy.sum()
    expected = q @ torch.diag(10 * r / (9 * r + 1)) @ q.T
    torch.testing.assert_close(importance(q @ torch.diag(energy) @ q.T, 10.0), expected)
    torch.testing.assert_close(importance(torch.eye(3).double(), 1e15), torch.eye(3).double())


def test_moments_of_a_convolution_are_those_of_what_it_multiplies():
    """In float32; the layer moves by two pixels at a time and pads."""
    model, seen = worlds.original(), {}
    layer = model.body.get_submodule("stage2.conv1")
    layer.register_forward_hook(lambda m, args, out: seen.update(out=out.detach()))
    examples = worlds.parts().retain[:8]
    moment = moments(model, examples, 8)["body.stage2.conv1"]
    w = model.get_parameter("body.stage2.conv1.weight").detach().flatten(1).double()
    out = seen["out"].double()
    expected = torch.einsum("nchw,ndhw->cd", out, out)
    torch.testing.assert_close(w @ moment @ w.T, expected, rtol=1e-4, atol=1e-3)


def test_kodge_reads_no_more_images_than_it_says():
    assert ran("kodge_svd", images=30).read == {"forget": 30, "retain": 30}


# ---- LEACE


def table(n: int = 300, d: int = 7) -> tuple[torch.Tensor, torch.Tensor]:
    rng = torch.Generator().manual_seed(0)
    concept = torch.rand(n, 1, generator=rng) < 0.3
    z = torch.randn(n, d, generator=rng).double() @ torch.randn(d, d, generator=rng).double()
    return z + 3 * concept * torch.randn(d, generator=rng).double(), concept.double()


@pytest.mark.parametrize("whiten", [True, False])
def test_nothing_of_the_concept_is_left_that_is_linear(whiten):
    z, concept = table()
    out = leace.fit(z, concept, whiten=whiten)(z)
    covariance = (out - out.mean(0)).T @ (concept - concept.mean(0)) / len(z)
    assert covariance.abs().max() < 1e-10


def test_no_linear_probe_reads_what_one_read_before():
    z, concept = table()
    y = concept.flatten().numpy()

    def read(x: torch.Tensor) -> float:
        probe = LogisticRegression(C=1e6, max_iter=1000).fit(x.numpy(), y)
        return float(balanced_accuracy_score(y, probe.predict(x.numpy())))

    assert read(z) > 0.9
    assert read(leace.fit(z, concept)(z)) == pytest.approx(0.5, abs=0.01)


def test_the_eraser_is_a_projection_of_rank_one():
    z, concept = table()
    eraser = leace.fit(z, concept)
    torch.testing.assert_close(eraser(eraser(z)), eraser(z), rtol=1e-10, atol=1e-10)
    assert eraser.left.shape == (7, 1)
    torch.testing.assert_close(eraser(eraser.mean[None]), eraser.mean[None])


def test_it_moves_features_less_than_the_orthogonal_eraser_does():
    """In the norm of the inverse covariance, and in mean square too."""
    z, concept = table()
    least, orth = (leace.fit(z, concept, whiten=w)(z) - z for w in (True, False))
    inverse = torch.linalg.inv(torch.cov(z.T))
    for norm in (inverse, torch.eye(7).double()):
        sizes = [torch.einsum("nd,de,ne->n", m, norm, m).mean() for m in (least, orth)]
        assert sizes[0] <= sizes[1]


def test_constant_features_are_left_alone():
    z, concept = torch.ones(10, 3).double(), (torch.arange(10) < 4).double()[:, None]
    torch.testing.assert_close(leace.fit(z, concept)(z), z)


def test_the_body_and_the_head_stay_and_the_eraser_can_be_stored(tmp_path):
    model = ran("leace").model
    moved = unlike(model, worlds.original())
    assert moved == {f"transform.{name}" for name in ("left", "right", "mean")}
    (tmp_path / "a").mkdir()
    weights.save(tmp_path / "a", model, {})
    again, _ = weights.load(tmp_path / "a" / "weights", worlds.data(), MODELS["resnet_mini"]())
    assert not unlike(again, model)
    mine, theirs = (worlds.logits(m, worlds.parts().test_retain) for m in (again, model))
    torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-4)  # layouts in memory differ


def test_two_classes_are_two_concepts():
    made = ran("leace", "classes:two,four").model.transform
    assert isinstance(made, leace.Leace)
    assert made.left.shape[1] == 2
