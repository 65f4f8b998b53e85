"""Architectures: every one of them, found by its file name, keeps what `Classifier` promises."""

import copy
from itertools import pairwise

import pytest
import torch
from torch import Tensor

from core.models import MODELS
from core.models.base import Architecture
from core.models.classifier import Classifier, Transform, pool
from core.registry import describe

K, SHAPES = 5, ((1, 28, 28), (3, 32, 32), (3, 8, 8))
TAPS = {
    "mlp": {"hidden1": 256, "penultimate": 64},
    "resnet_mini": {"stem": 16, "stage1": 16, "stage2": 32, "penultimate": 64},
    "resnet18": {"stem": 64, "stage1": 64, "stage2": 128, "stage3": 256, "penultimate": 512},
}


class Halve(Transform):
    """z -> z / 2."""

    def forward(self, z: Tensor) -> Tensor:
        return z / 2


def build(name: str, shape=(3, 8, 8), seed: int = 0) -> Classifier:
    torch.manual_seed(seed)
    mean, std = torch.full((shape[0],), 0.4), torch.full((shape[0],), 0.2)
    return MODELS[name]().build(shape, K, mean, std).eval()


def images(n: int, shape=(3, 8, 8), seed: int = 1) -> Tensor:
    return torch.rand(n, *shape, generator=torch.Generator().manual_seed(seed))


@pytest.fixture(params=MODELS)
def name(request):
    return request.param


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@torch.inference_mode()
def test_taps_come_in_order_and_with_their_widths(name, shape):
    model = build(name, shape)
    seen, logits = model.observe(images(3, shape))
    assert tuple(seen) == model.taps
    assert model.taps[-1] == "penultimate"
    widths = {tap: z.shape[1] for tap, z in seen.items()}
    assert widths == TAPS.get(name, widths)
    assert all(z.shape == (3, z.shape[1]) for z in seen.values())
    assert logits.shape == (3, K)


@torch.inference_mode()
def test_penultimate_feeds_the_head_exactly(name):
    model, x = build(name), images(4)
    seen, logits = model.observe(x)
    z = seen["penultimate"]
    assert torch.equal(z, model.features(x))
    assert torch.equal(model.head(z), logits)
    assert torch.equal(model.logits(z), logits)
    assert torch.equal(model(x), logits)


@torch.inference_mode()
def test_stages_are_the_taps_before_pooling(name):
    model, x = build(name), images(2)
    seen, _ = model.observe(x)
    for tap, h in model.stages(x):
        assert torch.equal(pool(h), seen[tap])


@torch.inference_mode()
def test_penultimate_features_are_not_negative(name):
    assert build(name).features(images(8)).min() >= 0


@torch.inference_mode()
def test_eval_features_do_not_depend_on_the_company(name):
    model, x = build(name), images(9)
    alone = torch.cat([model.features(one[None]) for one in x])
    # float32 kernels sum in another order for another batch size
    torch.testing.assert_close(model.features(x), alone, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(model.features(x.flip(0)).flip(0), alone, rtol=1e-4, atol=1e-5)


@torch.inference_mode()
def test_memory_format_changes_nothing(name):
    # Training runs in channels-last; float32 kernels of the two kinds sum in another order.
    model, x = build(name), images(4)
    other = x.contiguous(memory_format=torch.channels_last)
    torch.testing.assert_close(model(other), model(x), rtol=1e-4, atol=1e-5)


def test_fresh_has_new_weights_of_the_same_shape_and_leaves_the_old_alone(name):
    model = build(name)
    before = copy.deepcopy(model.state_dict())
    torch.manual_seed(7)
    new = model.fresh()
    for key, old in before.items():
        assert torch.equal(model.state_dict()[key], old)
        assert new.state_dict()[key].shape == old.shape
    assert torch.equal(new.mean, model.mean)
    assert torch.equal(new.std, model.std)
    assert not torch.equal(new.head.weight, model.head.weight)
    for mine, theirs in zip(model.body.parameters(), new.body.parameters(), strict=True):
        assert mine.data_ptr() != theirs.data_ptr()
        assert mine.ndim == 1 or not torch.equal(mine, theirs)
    torch.manual_seed(7)
    assert torch.equal(model.fresh().head.weight, new.head.weight)


def test_fresh_remembers_knobs_and_mirrors():
    a = MODELS["mlp"].parse({"hidden": "12", "penultimate": "6"})
    model = a.build((1, 4, 4), K, torch.zeros(1), torch.ones(1), mirrors=False).fresh()
    seen, _ = model.observe(images(2, (1, 4, 4)))
    assert [z.shape[1] for z in seen.values()] == [12, 6]
    assert not model.mirrors


@torch.inference_mode()
def test_masked_classes_have_no_chance(name):
    model, x = build(name), images(4)
    plain = model(x)
    model.masked[2] = True
    logits = model(x)
    assert (logits[:, 2] == -torch.inf).all()
    others = [0, 1, 3, 4]
    assert torch.equal(logits[:, others], plain[:, others])
    assert (logits.softmax(1)[:, 2] == 0).all()


@torch.inference_mode()
def test_a_transform_adds_a_tap_and_stands_before_the_head(name):
    model, x = build(name), images(3)
    before, taps = model.features(x), model.taps
    model.transform = Halve()
    seen, logits = model.observe(x)
    assert model.taps == (*taps, "transform")
    assert torch.equal(seen["penultimate"], before)
    assert torch.equal(seen["transform"], before / 2)
    assert torch.equal(logits, model.head(before / 2))


@torch.inference_mode()
def test_normalisation_is_part_of_the_model(name):
    model, x = build(name), images(3)
    shifted = copy.deepcopy(model)
    shifted.mean += 0.1
    # the same numbers reach the first layer, up to the rounding of the sum
    torch.testing.assert_close(shifted(x + 0.1), model(x), rtol=1e-3, atol=1e-4)
    assert not torch.allclose(shifted(x), model(x), rtol=1e-3, atol=1e-4)


def test_every_weight_gets_a_gradient(name):
    model = build(name).train()
    torch.nn.functional.cross_entropy(model(images(8)), torch.arange(8) % K).backward()
    for key, weight in model.named_parameters():
        assert weight.grad is not None, key
        assert weight.grad.abs().sum() > 0, key


def test_the_same_seed_gives_the_same_weights(name):
    a, b, c = (build(name, seed=s).state_dict() for s in (3, 3, 4))
    assert all(torch.equal(a[key], b[key]) for key in a)
    assert not torch.equal(a["head.weight"], c["head.weight"])


def test_state_survives_being_saved(name):
    model, x = build(name), images(2)
    model.masked[0] = True
    other = build(name, seed=5)
    other.load_state_dict(model.state_dict())
    with torch.inference_mode():
        assert torch.equal(other(x), model(x))


def test_every_architecture_has_a_title_and_trainable_settings(name):
    title, sentence = describe(MODELS[name])
    assert title
    assert sentence
    assert issubclass(MODELS[name], Architecture)
    assert MODELS[name].training.knobs()


def test_resnet18_halves_the_picture_three_times():
    with torch.inference_mode():
        sides = [h.shape[-1] for _, h in build("resnet18").stages(images(1, (3, 32, 32)))]
    assert sides == [32, 32, 16, 8, 4]
    assert all(a in (b, 2 * b) for a, b in pairwise(sides))


def test_resnet18_has_eleven_million_weights():
    weights = sum(p.numel() for p in build("resnet18", (3, 32, 32)).parameters())
    assert weights == 11_173_962 - 5 * 513  # the usual count is for ten classes, this for five


def test_the_mlp_sees_where_a_pixel_is():
    """A convolution with global pooling hardly would; flattening keeps the place."""
    model = build("mlp", (1, 8, 8))
    x = torch.zeros(2, 1, 8, 8)
    x[0, 0, 1, 1] = x[1, 0, 6, 6] = 1
    with torch.inference_mode():
        a, b = model.features(x)
    assert not torch.allclose(a, b)
