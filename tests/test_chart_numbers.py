"""What charts compute and write is right: counts, angles, scales, colours, numbers in words."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.charts import (
    MODELS,
    angles,
    class_change,
    confidence,
    heat,
    maps,
    membership,
    table,
    text,
    theme,
)

THEMES = list(theme.THEMES.values())


def test_each_image_has_the_state_that_its_predictions_say():
    y, forget = np.array([0, 0, 1, 1, 1, 1]), np.array([1, 1, 0, 0, 0, 0], bool)
    pred = {"unlearned": np.array([1, 0, 1, 0, -1, 0]), "gold": np.array([1, 1, 0, 1, 1, 0])}
    points = maps.Points(np.arange(6), y, forget, pred, ("a", "b"))
    forgotten = ["correctly forgotten", "not forgotten"]
    retained = ["retained, right", "over-forgotten", "over-forgotten", "retained, wrong"]
    assert maps.states(points) == forgotten + retained


@pytest.mark.parametrize("colours", THEMES, ids=lambda t: t.name)
def test_text_and_marks_are_told_from_their_ground(colours):
    words = [colours.ink, colours.muted, colours.forget_text, *map(colours.text, MODELS)]
    for ground in colours.grounds:
        assert min(theme.contrast(word, ground) for word in words) >= 4.5
        assert min(theme.contrast(c, ground) for c in colours.classes) >= 3
    inks = [(theme.on(c), c) for c in colours.classes]
    assert min(theme.contrast(ink, c) for ink, c in inks) >= 4.5
    assert theme.contrast("#000000", "#FFFFFF") == pytest.approx(21)


def test_colours_mean_one_thing_in_both_themes():
    marks = [[t.mark(m) for m in MODELS] + [t.forget] for t in THEMES]
    assert marks[0] == marks[1] == ["#5B7083", "#D55E00", "#E0A100", "#CC2F7B"]
    assert len({*theme.LIGHT.classes}) == len({*theme.DARK.classes}) == 26
    assert not {*theme.LIGHT.classes} & {*marks[0]}
    # Beyond the colours, shape tells classes apart.
    assert len({theme.LIGHT.of_class(c) for c in range(100)}) == 100


scores = st.lists(st.integers(-4, 4), min_size=1, max_size=20).map(np.array)


@given(scores, scores, st.integers(-5, 5))
def test_attack_counts_what_brute_force_counts(members, others, threshold):
    found = membership.rates(members, others, threshold)
    assert found.hits == sum(s >= threshold for s in members.tolist())
    assert found.alarms == sum(s >= threshold for s in others.tolist())
    right = found.hits / len(members) + sum(s < threshold for s in others.tolist()) / len(others)
    assert found.accuracy == pytest.approx(right / 2)


@given(scores, scores)
def test_no_threshold_beats_the_best_one(members, others):
    best = membership.rates(members, others, membership.best_threshold(members, others)).accuracy
    tries = [membership.rates(members, others, t).accuracy for t in range(-4, 5)]
    assert best == pytest.approx(max(tries))


def test_attack_scores_are_log_odds_and_survive_masks():
    logits = np.array([[2.0, 1.0, 0.0], [-np.inf, 1.0, 0.0], [0.0, -np.inf, -np.inf]])
    found = membership.scores(logits, np.array([0, 0, 0]))
    assert found[0] == pytest.approx(2 - math.log(math.e + 1))
    assert found[1:].tolist() == [-membership.LIMIT, membership.LIMIT]


def test_confidence_and_entropy_of_uniform_and_masked_answers():
    prob = confidence.probabilities(np.array([[0.0, 0, 0, 0], [5, 5, -np.inf, -np.inf]]))
    assert confidence.confidence(prob) == pytest.approx([0.25, 0.5])
    assert confidence.entropy(prob) == pytest.approx([math.log(4), math.log(2)])


def test_changes_are_paired_differences_with_open_intervals():
    before, after = np.array([1, 1, 1, 0] * 5, bool), np.array([1, 0, 0, 0] * 5, bool)
    assert class_change.paired(before, after).value == -0.5
    assert class_change.paired(before, after).high < 0
    same = class_change.paired(before, before)
    assert same.value == 0
    assert same.low < 0 < same.high


@pytest.mark.parametrize(("classes", "degrees"), [(3, 120), (4, 109.471), (10, 96.379)])
def test_ideal_angles(classes, degrees):
    assert angles.ideal(classes) == pytest.approx(degrees, abs=5e-4)


def test_a_map_without_positive_evidence_is_flat_and_rows_share_a_scale():
    image, cam = np.full((8, 8), 99, np.uint8), np.zeros((4, 4))
    hot = cam.copy()
    hot[0, 0] = 0.2
    row = heat.row(image, {"gold": hot, "original": 5 * hot, "unlearned": cam})
    assert list(row) == list(MODELS)
    assert [o.flat for o in row.values()] == [False, True, False]
    assert len(np.unique(row["unlearned"].image)) == 1
    assert "no positive evidence" in row["unlearned"].alt
    # A fifth of the row's evidence must not look like all of it.
    far = [np.abs(o.image.astype(int) - 99).max() for o in row.values()]
    assert far[2] < far[0]
    assert row["gold"].png.startswith(b"\x89PNG")
    assert heat.overlay(image, np.full((4, 4), np.nan)).flat


def test_images_of_any_layout_become_one_size():
    for shape in ((8, 8), (8, 8, 1), (8, 8, 3), (1, 8, 8), (3, 8, 8)):
        assert heat.picture(np.zeros(shape, np.uint8)).shape == (heat.SIZE, heat.SIZE, 3)


def test_numbers_carry_units_and_true_minus_signs():
    assert text.amount(0.9664, "fraction") == "96.6\u202f%"
    assert text.amount(-1.234) == "\u22121.23"
    assert text.amount(96.379, "degrees") == "96.4°"
    assert text.amount(None, "nats") == text.amount(math.nan) == "n/a"
    assert text.change(-0.0123, "fraction") == "\u22121.2\u202fpoints"
    assert text.amount(-0.00001, "fraction") == "0.0\u202f%"


def test_csv_defuses_formulas_and_keeps_numbers():
    lines = table.csv([{"class": "=cmd()", "change": -0.5}]).splitlines()
    assert lines == ["class,change", "'=cmd(),-0.5"]
