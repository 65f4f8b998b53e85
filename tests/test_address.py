"""The address: one text for one run, and nothing that can be typed breaks the page."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.address import FIRST, OWN, read
from core.unlearners import UNLEARNERS

HOSTILE = {
    "dataset": "<script>alert(1)</script>",
    "forget": "class:<img src=x onerror=alert(1)>",
    "unlearner": "__class__",
    "model": "../../etc/passwd",
    "seed": "-5",
    "golds": "1e9",
}


def test_the_first_visit_tells_the_story():
    ask = read({})
    assert ask.notices == []
    assert (ask.dataset.name, str(ask.target), ask.name) == tuple(FIRST.values())
    assert ask.words() == FIRST


@pytest.mark.parametrize("word", sorted(HOSTILE))
def test_a_word_that_cannot_be_met_falls_back_with_one_notice(word):
    ask = read({word: HOSTILE[word]})
    assert len(ask.notices) == 1
    assert ask.words() == FIRST


def test_all_nonsense_at_once_still_shows_the_first_run():
    ask = read(HOSTILE | {"knob.lr": "NaN", "knob.nope": "1"})
    assert ask.words() == FIRST
    assert len(ask.notices) == len(HOSTILE) + 1


@pytest.mark.parametrize("value", ["nan", "inf", "-1", "1e99", "", "x", "٣"])
def test_a_knob_out_of_range_shows_the_defaults(value):
    ask = read({"unlearner": "delete", "knob.lr": value})
    assert ask.unlearner == UNLEARNERS["delete"]()
    assert len(ask.notices) == 1


@pytest.mark.parametrize(
    ("forget", "shown"),
    [
        ("class:sneaker", "class:Sneaker"),
        ("classes:Bag,Sneaker", "classes:Sneaker,Bag"),
        ("random:12", "random:12"),
        ("ids:9,3,3", "ids:3,9"),
    ],
)
def test_every_kind_of_target_is_understood(forget, shown):
    ask = read({"forget": forget, "unlearner": "delete"})
    assert str(ask.target) == shown
    assert ask.notices == []


def test_a_method_for_classes_is_replaced_where_images_are_asked_for():
    ask = read({"forget": "random:12", "unlearner": "pour_p"})
    assert "instance" in type(ask.unlearner).levels
    assert len(ask.notices) == 1


@pytest.mark.parametrize("name", list(UNLEARNERS))
def test_words_lead_back_to_the_same_run(name):
    ask = read({"unlearner": name, "seed": "7", "golds": "1", "forget": "class:Bag"})
    again = read(ask.words())
    assert (again.words(), again.notices) == (ask.words(), [])
    assert again.unlearner == ask.unlearner


words = st.dictionaries(st.sampled_from([*OWN, "knob.lr", "knob.strength", "tab"]), st.text())


@given(words)
def test_whatever_is_typed_a_run_is_shown(typed):
    ask = read(typed)
    assert read(ask.words()).notices == []
