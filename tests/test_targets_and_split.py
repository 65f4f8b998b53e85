"""Whatever is to be forgotten, the sets neither lose an example nor share one."""

from dataclasses import replace

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from core.data import SOURCES, load, offered
from core.data.examples import Dataset, number
from core.data.split import SETS, Split, split
from core.data.targets import (
    ForgetClasses,
    ForgetIds,
    ForgetRandom,
    TargetError,
    parse,
    subclasses,
)

OFFLINE = [name for name in offered() if not SOURCES[name.partition(":")[0]].download]
K, N = 4, 60


def _data(names: tuple[str, ...] = tuple("abcd"), n: int = N) -> Dataset:
    x = torch.arange(2 * n).view(-1, 1, 1, 1).to(torch.uint8)  # a pixel tells the id
    y = torch.arange(2 * n) % len(names)
    return Dataset("tiny", names, number(x[:n], y[:n], 0), number(x[n:], y[n:], n), "none", "made")


DATA = _data()
labels = st.sets(st.integers(0, K - 1), min_size=1, max_size=K - 1)
texts = st.one_of(
    labels.map(lambda s: "classes:" + ",".join(DATA.classes[i] for i in s)),
    st.integers(1, N - 1).map(lambda n: f"random:{n}"),
    st.sets(st.integers(0, N - 1), min_size=1, max_size=N - 1).map(
        lambda s: "ids:" + ",".join(map(str, s))
    ),
)
shares = st.floats(0, 0.9)


@given(texts, shares, st.integers(0, 9))
def test_sets_partition_the_data(text, val, seed):
    parts = split(DATA, parse(text, DATA), val=val, seed=seed)
    ids = {name: getattr(parts, name).ids for name in SETS}
    train = torch.cat([ids["forget"], ids["retain"], ids["val"]])
    test = torch.cat([ids["test_forget"], ids["test_retain"]])
    assert torch.equal(train.sort().values, DATA.train.ids)
    assert torch.equal(test.sort().values, DATA.test.ids)


@given(texts, shares)
def test_what_is_to_be_forgotten_is_in_the_forget_sets_alone(text, val):
    target = parse(text, DATA)
    parts = split(DATA, target, val=val)
    gone = set(parts.forget.ids.tolist())
    assert gone == set(DATA.train.ids[target.mask(DATA.train, True)].tolist())
    if isinstance(target, ForgetClasses):
        assert set(parts.forget.y.tolist()) == set(target.labels)
        assert set(parts.test_forget.y.tolist()) == set(target.labels)
        for name in ("retain", "val", "test_retain"):
            assert not set(getattr(parts, name).y.tolist()) & set(target.labels)
    else:
        assert len(parts.test_forget) == 0


@given(texts, shares)
def test_ids_images_and_labels_travel_together(text, val):
    parts = split(DATA, parse(text, DATA), val=val)
    for name in SETS:
        part = getattr(parts, name)
        assert torch.equal(part.x.flatten().long(), part.ids)
        assert torch.equal(part.y, part.ids % K)


@given(texts, st.sets(st.sampled_from(SETS)))
def test_undeclared_sets_arrive_empty(text, names):
    parts = split(DATA, parse(text, DATA), val=0.2)
    seen = parts.only(frozenset(names))
    for name in SETS:
        kept = getattr(parts, name) if name in names else DATA.train[:0]
        assert torch.equal(getattr(seen, name).ids, kept.ids)


@given(shares, st.integers(0, 99))
def test_the_validation_share_is_held_out_by_the_seed_alone(val, seed):
    target = parse("class:b", DATA)
    once, again = (split(DATA, target, val=val, seed=seed) for _ in range(2))
    assert torch.equal(once.val.ids, again.val.ids)
    assert len(once.val) == int(val * (N - N // K))


def test_another_seed_holds_out_others():
    target = parse("class:b", DATA)
    held = [split(DATA, target, val=0.5, seed=s).val.ids.tolist() for s in range(2)]
    assert held[0] != held[1]


def test_sets_move_to_a_device_together():
    moved = split(DATA, parse("class:b", DATA)).to(torch.device("meta"))
    assert isinstance(moved, Split)
    assert {getattr(moved, name).x.device.type for name in SETS} == {"meta"}


@pytest.mark.parametrize("name", OFFLINE)
def test_every_target_of_every_data_set_is_read_back_from_its_text(name):
    data = load(name)
    asked = [f"class:{c}" for c in data.classes]
    asked += [f"classes:{a},{b}" for a, b in zip(data.classes, data.classes[1:], strict=False)]
    asked += [f"subclass:{name}" for name in subclasses(data)]
    asked += ["random:1", f"random:{len(data.train) - 1}", "ids:0", f"ids:3,{len(data.train) - 1}"]
    for text in asked:
        target = parse(text, data)
        assert str(target) == text
        assert parse(str(target), data) == target
        assert target.title()


letters = st.text("aA ,%2C\\<\u00e9", min_size=1, max_size=4)
names = st.lists(letters, min_size=3, max_size=5, unique=True)


@given(names, st.data())
def test_any_names_survive_being_written_and_read(names, draw):
    data = _data(tuple(names), 2 * len(names))
    chosen = draw.draw(st.sets(st.sampled_from(range(len(names))), min_size=1))
    assume(len(chosen) < len(names))
    labels = tuple(sorted(chosen))
    target = ForgetClasses(labels, tuple(names[i] for i in labels))
    assert parse(str(target), data) == target


def test_names_are_read_as_people_write_them():
    data = _data(("T-shirt", "Tube, thin", "<b>Bag</b>", "Straße"))
    assert parse("class:t-SHIRT", data) == parse("class: T-shirt ", data)
    assert parse("class:Tube, thin", data).title() == "Tube, thin"
    assert parse("class:<B>bag</B>", data).title() == "<b>Bag</b>"
    both = parse("classes: strasse , tube%2C thin", data)
    assert str(both) == "classes:Tube%2C thin,Straße"
    assert both.title() == "Tube, thin and Straße"


def test_names_that_differ_in_case_alone_are_told_apart():
    data = _data(("cat", "Cat", " cat"))
    for label, name in enumerate(data.classes):
        assert parse(f"class:{name}", data) == ForgetClasses((label,), (name,))


def test_order_and_repetition_make_no_other_target():
    assert parse("classes:c,a,c", DATA) == parse("classes:a,c", DATA)
    assert parse("classes:a", DATA) == parse("class:a", DATA)
    assert parse("ids:3,1,3", DATA) == parse("ids:1,3", DATA)


def test_titles_read_as_part_of_a_sentence():
    said = [parse(t, DATA).title() for t in ("classes:a,b,c", "random:2", "ids:4", "ids:4,5")]
    assert said == ["a, b and c", "2 random images", "1 chosen image", "2 chosen images"]


def test_random_images_are_the_same_for_everyone_and_of_the_training_set_only():
    target = ForgetRandom(7, N)
    assert target.mask(DATA.train, True).sum() == 7
    assert torch.equal(target.mask(DATA.train, True), target.mask(DATA.train, True))
    assert not target.mask(DATA.test, False).any()


REFUSED = {
    "": "is no forget target; write class:NAME",
    "b": "'b' is no forget target",
    "concept:b": "is no forget target",
    "class:": "tiny has no class ''; choose from: a, b, c, d.",
    "class:e": "tiny has no class 'e'",
    "classes:": "tiny has no class ''",
    "classes:a,,b": "tiny has no class ''",
    "classes:a,e": "tiny has no class 'e'",
    "classes:a,b,c,d": "all classes: nothing would be left",
    "subclass:b": "tiny has no subclasses: its labels are the finest there are.",
    "random:": "random takes whole numbers, not ''",
    "random:many": "random takes whole numbers, not 'many'",
    "random:1.5": "random takes whole numbers",
    "random:0": "random takes 1 to 59 images of tiny, not 0",
    "random:-3": "random takes 1 to 59",
    "random:60": "random takes 1 to 59 images of tiny, not 60",
    "ids:": "ids takes whole numbers, not ''",
    "ids:1,two": "ids takes whole numbers, not 'two'",
    "ids:60": "tiny has no training image with the id 60",
    "ids:-1": "tiny has no training image with the id -1",
    "ids:1" + "0" * 30: "no training image with the id 10000",
    "ids:" + ",".join(map(str, range(N))): "all training images: nothing would be left",
}


@pytest.mark.parametrize("text", REFUSED, ids=lambda t: t[:20] or "nothing")
def test_a_target_that_cannot_be_met_is_refused_in_one_sentence(text):
    with pytest.raises(TargetError) as stop:
        parse(text, DATA)
    said = str(stop.value)
    assert REFUSED[text] in said
    assert said.endswith(".")
    assert "\n" not in said


def test_a_class_without_training_images_leaves_nothing_to_forget():
    data = replace(DATA, classes=(*DATA.classes, "e"))
    with pytest.raises(TargetError, match="no training image to forget for class:e"):
        split(data, parse("class:e", data))


def test_a_class_with_all_training_images_leaves_nothing_to_retain():
    lonely = replace(DATA.train, y=torch.zeros(N, dtype=torch.long))
    data = replace(DATA, train=lonely)
    with pytest.raises(TargetError, match="Nothing of tiny would be left to retain"):
        split(data, parse("class:a", data))


def test_ids_and_classes_mask_what_they_name():
    assert ForgetIds((3, 5)).mask(DATA.train, True).nonzero().flatten().tolist() == [3, 5]
    assert not ForgetIds((3, 5)).mask(DATA.test, False).any()
    assert ForgetClasses((1,), ("b",)).mask(DATA.test, False).sum() == N // K
