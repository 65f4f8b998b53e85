"""Data sets: every embedded one is sound, and what is loaded is what was asked for."""

import importlib.util
import inspect
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from core.data import SOURCES, download, load, offered
from core.data.assets import ASSETS
from core.data.examples import DataError, Dataset, Examples, join, number
from core.models import MODELS
from core.optim import fit
from core.registry import UnknownName, describe

OFFLINE = [n for n in [*offered(), "blobs"] if not SOURCES[n.partition(":")[0]].download]


def tiny(n: int = 6, k: int = 2) -> Dataset:
    """`n` training and `n` test images of 2x2 pixels, of `k` classes in turn."""
    x = torch.arange(2 * n * 4, dtype=torch.uint8).view(-1, 1, 2, 2)
    y = torch.arange(2 * n) % k
    names = tuple("abcdefgh"[:k])
    return Dataset("tiny", names, number(x[:n], y[:n], 0), number(x[n:], y[n:], n), "none", "made")


@pytest.fixture
def no_network(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("this must not ask the network")

    monkeypatch.setattr(download, "urlopen", refuse)


@pytest.mark.parametrize("name", OFFLINE)
def test_ids_are_unique_and_every_class_is_on_both_sides(name):
    data = load(name)
    ids = torch.cat([data.train.ids, data.test.ids])
    assert ids.unique().numel() == len(ids) == len(data.train) + len(data.test)
    everyone = list(range(len(data.classes)))
    assert data.train.y.unique().tolist() == data.test.y.unique().tolist() == everyone


@pytest.mark.parametrize("name", OFFLINE)
def test_pixels_use_the_whole_range(name):
    x = load(name).train.x
    assert (x.min(), x.max()) == (0, 255) or name == "blobs"
    assert x.float().std() > 25  # a scale forgotten (0..16, say) would stay below 10


@pytest.mark.parametrize("name", OFFLINE)
def test_loading_again_gives_the_same_data(name):
    kind, _, argument = name.partition(":")
    assert SOURCES[kind]().load(argument).digest == load(name).digest


@pytest.mark.parametrize("name", SOURCES)
def test_a_source_says_what_it_is_without_a_network(name, no_network):
    title, sentence = describe(SOURCES[name])
    assert title
    assert sentence
    assert inspect.getdoc(SOURCES[name])
    classes = SOURCES[name]().classes()
    assert len(set(classes)) == len(classes) != 1


@pytest.mark.parametrize("name", OFFLINE)
def test_class_names_and_model_agree_with_the_data(name):
    data = load(name)
    assert data.name == name
    kind, _, argument = name.partition(":")
    assert data.classes == SOURCES[kind]().classes(argument)
    assert data.model in MODELS
    assert data.licence
    assert data.origin.endswith(".")


def test_only_pictures_that_mean_the_same_may_be_mirrored():
    assert [n for n in OFFLINE if load(n).mirrors] == ["fashion", "fashion:coarse"]


def test_fashion_has_the_promised_ids_and_counts():
    data = load("fashion")
    assert data.shape == (1, 28, 28)
    assert torch.equal(data.train.ids, torch.arange(12000))
    assert torch.equal(data.test.ids, torch.arange(12000, 15000))
    assert data.train.y.bincount().tolist() == [1200] * 10
    assert data.test.y.bincount().tolist() == [300] * 10


def test_fashion_is_what_its_script_makes(tmp_path):
    spec = importlib.util.spec_from_file_location("script", ASSETS / "scripts" / "fashion.py")
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    if not script.DEBIAN.is_dir():
        pytest.skip("Debian's package dataset-fashion-mnist is not installed.")
    script.build(tmp_path / "fashion.npz")
    made = (tmp_path / "fashion.npz").read_bytes()
    assert made == (ASSETS / "data" / "fashion.npz").read_bytes()


def test_fashion_without_its_file_says_how_to_rebuild_it(monkeypatch, tmp_path):
    monkeypatch.setattr(SOURCES["fashion"], "file", tmp_path / "fashion.npz")
    with pytest.raises(DataError, match=r"assets/scripts/fashion\.py"):
        SOURCES["fashion"]().load()


def test_digits_are_scikit_learns_in_grey_levels():
    from sklearn.datasets import load_digits

    data, original = load("digits"), np.asarray(load_digits(return_X_y=True)[0])
    everything = join(data.train, data.test)
    assert len(everything) == len(original)
    ours = sorted(map(bytes, everything.x.numpy()))
    theirs = sorted(map(bytes, np.rint(original * 255 / 16).astype(np.uint8)))
    assert ours == theirs
    shares = data.test.y.bincount() / everything.y.bincount()
    assert ((shares - 0.2).abs() < 0.01).all()  # 174 to 183 a class, rounded to whole images


def test_blobs_are_learnt_in_seconds():
    data = load("blobs")
    architecture = MODELS[data.model]()
    torch.manual_seed(0)
    model = architecture.build(data.shape, len(data.classes), *data.moments, mirrors=data.mirrors)
    fit(model, data.train, architecture.training, torch.Generator().manual_seed(0))
    hits = model(data.test.float().x).argmax(1) == data.test.y
    assert hits.float().mean() >= 0.95  # measured: 0.98 for three seeds


def test_unknown_names_and_idle_arguments_are_refused():
    with pytest.raises(UnknownName, match=r"There is no data set 'mnist'.*fashion"):
        load("mnist")
    with pytest.raises(DataError, match="digits takes nothing after a colon"):
        load("digits:5")


@given(st.integers(1, 40), st.integers(1, 12), st.integers(0, 5))
def test_an_epoch_shows_each_example_once_and_none_alone(n, size, seed):
    part = tiny(n).train
    batches = list(part.epoch(size, torch.Generator().manual_seed(seed)))
    assert torch.cat([b.ids for b in batches]).sort().values.tolist() == part.ids.tolist()
    assert size == 1 or n == 1 or all(len(b.ids) > 1 for b in batches)
    assert all(len(b.ids) <= size + 1 for b in batches)


@given(st.integers(1, 20), st.permutations(range(12)))
def test_ids_travel_with_images_and_labels(size, order):
    data = tiny(12, 3)
    part = data.train[torch.tensor(order)]
    for batch in part.epoch(size, torch.Generator().manual_seed(0)):
        same = data.by_id(batch.ids)
        assert torch.equal(same.x.float() / 255, batch.x)
        assert torch.equal(same.y, batch.y)


def test_by_id_refuses_an_id_that_nobody_has():
    data = tiny()
    assert data.by_id(torch.tensor([11, 0])).ids.tolist() == [11, 0]
    for stranger in (12, -1):
        with pytest.raises(DataError, match=f"no example with the id {stranger}"):
            data.by_id(torch.tensor([0, stranger]))


def _other_pixel(part: Examples) -> Examples:
    x = part.x.clone()
    x[-1, -1, -1, -1] += 1
    return replace(part, x=x)


@pytest.mark.parametrize("part", ["train", "test", "external"])
def test_one_pixel_makes_another_data_set(part):
    data = replace(tiny(), external=number(tiny().test.x, tiny().test.y, 100))
    assert replace(data).digest == data.digest
    assert replace(data, **{part: _other_pixel(getattr(data, part))}).digest != data.digest


def test_one_label_or_name_makes_another_data_set():
    data = tiny()
    flipped = replace(data.train, y=data.train.y.flip(0))
    assert replace(data, train=flipped).digest != data.digest
    assert replace(data, classes=("a", "B")).digest != data.digest


TINY = tiny()
BAD = {
    "uint8": {"train": replace(TINY.train, x=TINY.train.x.float())},
    "empty": {"test": TINY.test[:0]},
    "do not fit": {"train": replace(TINY.train, y=TINY.train.y[1:])},
    "outside 0..1": {"test": replace(TINY.test, y=TINY.test.y + 1)},
    "differ in size": {"test": replace(TINY.test, x=TINY.test.x[..., :1])},
    "names of their own": {"classes": ("a", "a")},
}


@pytest.mark.parametrize("why", BAD)
def test_data_that_nothing_could_use_is_refused(why):
    with pytest.raises(DataError, match=why):
        replace(TINY, **BAD[why])


def test_batches_of_an_empty_set_say_so():
    with pytest.raises(DataError, match="did not declare"):
        next(TINY.train[:0].batches(4, torch.Generator()))
