"""What is not computed twice: it must be what computing it again would give."""

import dataclasses

import pytest
import seen
import torch
import worlds

from core import devices
from core.audit import Bench
from core.metrics import METRICS
from core.metrics.base import Measured
from core.metrics.outputs import observe
from core.models.projection import Projection, orthonormal

PER_TAP = [name for name, kind in METRICS.items() if kind.per_tap]


@pytest.mark.parametrize("name", PER_TAP)
def test_a_reading_along_depth_sees_features_and_labels_only(name):
    model, other = seen.outputs(1), seen.outputs(2)
    changed = dataclasses.replace(
        model,
        logits={part: -z for part, z in model.logits.items()},
        head=model.head.flip(0),
        bias=model.bias + 1,
        seconds=99.0,
    )
    first, again = seen.read(name, model, other), seen.read(name, changed, other)
    assert (first.value, first.low, first.high) == (again.value, again.low, again.high)


def test_only_taps_with_equal_features_count_as_untouched():
    original, unlearned = seen.outputs(0, transform=True), seen.outputs(0, transform=True)
    moved = unlearned.features["test_retain"]["stage1"].clone()
    moved[3, 2] += 1e-6 + moved[3, 2].abs() * 1e-6
    changed = {**unlearned.features["test_retain"], "stage1": moved}
    unlearned = dataclasses.replace(
        unlearned, features={**unlearned.features, "test_retain": changed}
    )
    bench = Bench(original, unlearned, (), "class", 0)
    assert bench.untouched == {"stem", "penultimate", "transform"}


def test_readings_of_untouched_taps_are_the_ones_taken_anew():
    original, golds = seen.outputs(0), (seen.outputs(7), seen.outputs(8))
    twin = dataclasses.replace(original, logits={n: -z for n, z in original.logits.items()})
    bench = Bench(original, twin, golds, "class", 0)
    for name in PER_TAP:
        metric = METRICS[name]()
        reused = bench.read(name, metric, twin, "stage1")
        alone = dataclasses.replace(bench, original=seen.outputs(3), memo={})
        fresh = alone.read(name, metric, twin, "stage1")
        if metric.against != "original":
            assert isinstance(reused, Measured)
            assert isinstance(fresh, Measured)
            assert reused.value == fresh.value, name


def sets():
    found = worlds.parts()
    return {n: getattr(found, n) for n in ("forget", "retain", "test_forget", "test_retain")}


def projected():
    model = worlds.original()
    model.transform = Projection(orthonormal(model.head.weight[2:3]).float())
    return model


def test_what_stands_behind_a_known_body_is_what_a_whole_pass_shows():
    body = observe(worlds.original(), sets())
    short, whole = observe(projected(), sets(), body=body), observe(projected(), sets())
    assert short.taps == whole.taps
    for part in sets():
        # Batches of another size add up in another order.
        torch.testing.assert_close(short.logits[part], whole.logits[part], rtol=1e-5, atol=1e-5)
        for tap in whole.taps:
            torch.testing.assert_close(
                short.features[part][tap], whole.features[part][tap], rtol=1e-5, atol=1e-5
            )
    assert not torch.equal(short.logits["forget"], body.logits["forget"])


@pytest.mark.parametrize("tensor", ["mean", "std", "weight", "running_mean"])
def test_a_body_that_differs_in_anything_is_another_one(tensor):
    one, other = worlds.original(), projected()
    assert one.same_body(other)
    state = other.state_dict()
    name = next(n for n in state if n == tensor or (n[:5] == "body." and n.endswith(tensor)))
    state[name].add_(1e-3)
    assert not one.same_body(other)


def test_a_part_without_samples_has_no_features():
    nothing = {name: part[:0] for name, part in sets().items()}
    seen_ = observe(worlds.original(), nothing)
    assert all(len(z) == 0 for z in seen_.logits.values())


def test_spread_work_keeps_its_order_and_has_no_gradients():
    weight = torch.ones(3, requires_grad=True)
    found = devices.spread(
        lambda i: (i, (weight * i).requires_grad), range(50), torch.device("cpu")
    )
    assert found == [(i, False) for i in range(50)]


def test_one_thread_gives_back_what_there_was():
    torch.set_num_threads(2)
    with devices.one_thread():
        inside = torch.get_num_threads()
    outside = torch.get_num_threads()
    torch.set_num_threads(1)
    assert (inside, outside) == (1, 2)
