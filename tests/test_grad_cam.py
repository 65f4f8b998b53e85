"""Grad-CAM says where the evidence lies, is its formula, and leaves no trace."""

import copy
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate
from worlds import MOMENTS, SIDE, K, network, pictures

from core.explain import grad_cam as explain
from core.explain.grad_cam import NoMap, grad_cam, tokens_to_map
from core.models.classifier import Classifier
from core.models.mlp import MLP

MODEL, X, ASKED = network(), pictures(), torch.arange(6) % K


def last_stage(model: Classifier, x: Tensor) -> Tensor:
    with torch.no_grad():
        *_, (_, h) = model.stages(x)
    return h


def class_activation(model: Classifier, x: Tensor, targets: Tensor) -> Tensor:
    """sum_c w_c A_c / (h w) (Zhou et al. 2016, arxiv.org/abs/1512.04150), signed."""
    h = last_stage(model, x)
    weights = model.head.weight[targets].detach()
    return torch.einsum("nc,nchw->nhw", weights, h) / h[0, 0].numel()


def test_the_map_of_a_pooled_linear_head_is_its_class_activation_map():
    raw = class_activation(MODEL, X, ASKED)
    grown = interpolate(raw.relu()[:, None], (SIDE, SIDE), mode="bilinear").squeeze(1)
    # float32: sums of 64 products of order 0.1
    torch.testing.assert_close(grad_cam(MODEL, X, ASKED), grown, rtol=1e-5, atol=1e-5)
    assert (raw < -1e-3).any()
    assert (raw > 1e-3).any()


def test_evidence_before_the_relu_sums_to_the_logit_without_bias():
    with torch.no_grad():
        logits = (MODEL(X) - MODEL.head.bias)[torch.arange(6), ASKED]
    total = class_activation(MODEL, X, ASKED).sum((1, 2))
    torch.testing.assert_close(total, logits, rtol=1e-4, atol=1e-5)


def test_a_masked_class_and_no_class_have_flat_maps():
    model = copy.deepcopy(MODEL)
    model.masked[2] = True
    maps = grad_cam(model, X, torch.tensor([0, 1, 2, 2, -1, 3]))
    assert torch.isfinite(maps).all()
    assert maps[[2, 3, 4]].abs().max() == 0
    assert maps[[0, 1, 5]].amax((1, 2)).min() > 0


def test_evidence_against_a_class_gives_a_flat_map():
    model = copy.deepcopy(MODEL)
    with torch.no_grad():
        model.head.weight[1] = -model.head.weight[1].abs()  # on features that are not negative
    assert grad_cam(model, X, torch.ones(6, dtype=torch.long)).max() == 0


def test_a_transform_between_body_and_head_counts():
    class Half(nn.Module):
        def forward(self, z):
            return z / 2

    model = copy.deepcopy(MODEL)
    model.transform = Half()  # pyright: ignore[reportAttributeAccessIssue]
    half = grad_cam(MODEL, X, ASKED) / 2
    torch.testing.assert_close(grad_cam(model, X, ASKED), half, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_maps_are_made_where_gradients_are_off(mode):
    with mode():
        model, x = copy.deepcopy(MODEL), X.clone()
        found = grad_cam(model, x, ASKED.clone())
    assert torch.equal(found, grad_cam(MODEL, X, ASKED))
    assert torch.equal(found, grad_cam(model, x, ASKED))  # tensors born there work outside, too


def test_frozen_weights_and_training_mode_do_not_matter():
    model = copy.deepcopy(MODEL).requires_grad_(False).train()
    assert torch.equal(grad_cam(model, X, ASKED), grad_cam(MODEL, X, ASKED))


def hooks(model: nn.Module) -> int:
    kinds = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    return sum(len(getattr(m, kind)) for m in model.modules() for kind in kinds)


@pytest.mark.parametrize("fails", [False, True])
def test_the_model_is_left_as_it_was(fails):
    model = network().train()
    before = copy.deepcopy(model.state_dict())
    if fails:
        with pytest.raises(RuntimeError):
            grad_cam(model, X, torch.full((6,), K))
    else:
        grad_cam(model, X, ASKED)
    assert hooks(model) == 0
    assert all(m.training for m in model.modules())
    assert all(p.grad is None and p.requires_grad for p in model.parameters())
    assert all(torch.equal(before[name], now) for name, now in model.state_dict().items())


def test_threads_that_share_a_model_get_what_one_thread_gets():
    alone = grad_cam(MODEL, X, ASKED)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: grad_cam(MODEL, X, ASKED), range(16)))
    assert all(torch.equal(alone, maps) for maps in found)


def test_maps_do_not_depend_on_the_batch(monkeypatch):
    whole = grad_cam(MODEL, X, ASKED)
    monkeypatch.setattr(explain, "BATCH", 4)
    # float32: other batch sizes, other kernels
    torch.testing.assert_close(grad_cam(MODEL, X, ASKED), whole, rtol=1e-4, atol=1e-5)
    assert grad_cam(MODEL, X[:0], ASKED[:0]).shape == (0, SIDE, SIDE)


def test_a_model_without_places_has_no_map():
    model = MLP(hidden=8, penultimate=4).build((1, SIDE, SIDE), K, *MOMENTS)
    with pytest.raises(NoMap, match="no spatial stage"):
        grad_cam(model, X, ASKED)


class Patches(nn.Module):
    """4 x 4 patches and a class token, d = 8."""

    def __init__(self) -> None:
        super().__init__()
        self.cut = nn.Conv2d(1, 8, 4, 4)
        self.token = nn.Parameter(torch.randn(1, 1, 8))

    def forward(self, x: Tensor) -> Tensor:
        patches = self.cut(x).flatten(2).transpose(1, 2)
        return torch.cat([self.token.expand(len(x), 1, 8), patches], 1)


class ReadToken(nn.Module):
    """The class token alone."""

    def forward(self, x: Tensor) -> Tensor:
        return x[:, 0]


def transformer() -> Classifier:
    torch.manual_seed(3)
    stages: dict[str, nn.Module] = {"patches": Patches()}
    for i in (1, 2):
        stages[f"block{i}"] = nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True)
    return Classifier({**stages, "read": ReadToken()}, 8, K, *MOMENTS).eval()


def test_tokens_keep_their_places_and_the_class_token_goes():
    tokens = torch.arange(2 * 7 * 3).view(2, 7, 3)
    placed = tokens_to_map(tokens, (2, 3))
    assert placed.shape == (2, 3, 2, 3)
    for row in range(2):
        for column in range(3):
            assert torch.equal(placed[:, :, row, column], tokens[:, 1 + 3 * row + column])


def test_a_transformers_map_follows_the_formula_on_patch_tokens():
    model = transformer()
    tokens = model.body["block1"](model.body["patches"]((X - 0.5) / 0.25))
    logits = model.logits(model.body["read"](model.body["block2"](tokens)))
    (slope,) = torch.autograd.grad(logits[torch.arange(6), ASKED].sum(), tokens)
    weights = slope[:, 1:].mean(1, keepdim=True)
    raw = (weights * tokens[:, 1:]).sum(2).relu().detach().view(6, 1, 4, 4)
    grown = interpolate(raw, (SIDE, SIDE), mode="bilinear").squeeze(1)
    assert grown.max() > 0
    # float32: attention's sums in another order
    torch.testing.assert_close(grad_cam(model, X, ASKED), grown, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(("count", "size"), [(16, (4, 4)), (17, (4, 4)), (50, (7, 7))])
def test_a_grid_is_read_off_the_number_of_tokens(count, size):
    assert explain.grid(count) == size


@pytest.mark.parametrize("count", [1, 2, 7, 19])
def test_tokens_that_are_no_square_have_no_map(count):
    with pytest.raises(NoMap, match="no square"):
        explain.grid(count)
