"""Attention: which images are shown, and maps of all models on one scale."""

import copy

import torch
from torch import Tensor
from torch.nn.functional import one_hot
from worlds import SIDE, K, network, pictures

from core.data.examples import Examples, number
from core.explain import grad_cam as explain
from core.explain.grad_cam import attention, entangled, rows
from core.models.classifier import Classifier

MODEL = network()


def examples(n: int = 6) -> Examples:
    return number((255 * pictures(n)).byte(), torch.arange(n) % K, 100)


def scaled(model: Classifier, by: float) -> Classifier:
    model = copy.deepcopy(model)
    with torch.no_grad():
        model.head.weight.mul_(by)
        model.head.bias.mul_(by)
    return model


def shown(models: dict[str, Classifier]) -> dict:
    batch = examples()
    return attention(models, batch, batch.y == 1)


def test_a_row_has_one_scale_over_the_models():
    found = shown({"original": MODEL, "unlearned": scaled(MODEL, 0.5), "gold": network(1)})
    for aim in ("true", "predicted"):
        maps = {m: torch.from_numpy(found[f"cam/{aim}/{m}"]).float() for m in found_models(found)}
        top = torch.stack(list(maps.values())).amax((0, 2, 3))
        assert torch.equal(top[found[f"scale/{aim}"] > 0].unique(), torch.ones(1))
    # float16 has a step of 2^-11
    half = torch.from_numpy(found["cam/true/original"]).float() / 2
    unlearned = torch.from_numpy(found["cam/true/unlearned"]).float()
    torch.testing.assert_close(unlearned, half, rtol=0, atol=1e-3)


def found_models(arrays: dict) -> list[str]:
    return [key.split("/")[2] for key in arrays if key.startswith("cam/true/")]


def test_attention_has_the_arrays_that_pictures_need():
    found = shown({"original": MODEL, "unlearned": MODEL})
    assert found["ids"].tolist() == list(range(100, 106))
    assert found["forget"].tolist() == (found["y"] == 1).tolist()
    assert found["cam/true/original"].shape == (6, SIDE, SIDE)
    assert {found[k].dtype.name for k in found if k.startswith("cam/")} == {"float16"}
    assert found["target/true/unlearned"].tolist() == found["y"].tolist()
    with torch.no_grad():
        answers = MODEL(examples().float().x).argmax(1).tolist()
    assert found["target/predicted/original"].tolist() == answers


def test_a_model_that_did_not_change_shows_the_same_maps():
    found = shown({"original": MODEL, "unlearned": copy.deepcopy(MODEL), "gold": network(1)})
    for aim in ("true", "predicted"):
        assert (found[f"cam/{aim}/original"] == found[f"cam/{aim}/unlearned"]).all()


def test_a_row_without_any_evidence_stays_flat():
    model = copy.deepcopy(MODEL)
    model.masked[1] = True
    found = shown({"original": model, "unlearned": model})
    gone = found["y"] == 1
    assert (found["scale/true"][gone] == 0).all()
    assert (found["scale/true"][~gone] > 0).all()
    assert (found["cam/true/original"][gone] == 0).all()


def test_rounding_is_not_drawn_as_evidence():
    found = shown({"original": scaled(MODEL, 1e-9), "unlearned": scaled(MODEL, -1e-9)})
    assert found["cam/true/original"].max() == 0
    assert found["scale/true"].max() == 0


def test_a_model_that_prefers_no_class_is_asked_about_none():
    found = shown({"original": MODEL, "unlearned": scaled(MODEL, 0.0)})
    assert (found["target/predicted/unlearned"] == -1).all()
    assert (found["cam/predicted/unlearned"] == 0).all()


Y = torch.arange(60) % 6


FORGET = Y == 0


def said(answers: Tensor) -> Tensor:
    return one_hot(answers, 6).float()


def test_forget_images_come_first_then_those_that_gold_takes_them_for():
    gold = Y.clone()
    gold[FORGET] = torch.tensor([4, 4, 4, 4, 4, 2, 2, 2, 5, 5])
    logits = {"original": said(Y), "unlearned": said(Y), "gold": said(gold)}
    picked = rows(Y, FORGET, logits, seed=0, classes=3)
    assert Y[picked].tolist() == [0, 0, 0, 0, 4, 4, 2, 2, 5, 5]
    assert picked.unique().numel() == len(picked)
    assert torch.equal(picked, rows(Y, FORGET, logits, seed=0, classes=3))
    assert not torch.equal(picked, rows(Y, FORGET, logits, seed=1, classes=3))


def test_without_gold_the_class_that_changed_most_is_nearest():
    unlearned = Y.clone()
    unlearned[Y == 3] = 1
    unlearned[(Y == 5).nonzero()[:4]] = 1
    logits = {"original": said(Y), "unlearned": said(unlearned)}
    assert list(entangled(Y, FORGET, logits))[:2] == [3, 5]


def test_several_forgotten_classes_share_the_forget_rows():
    logits = {"original": said(Y), "unlearned": said(Y)}
    picked = rows(Y, Y < 2, logits, seed=0)
    assert sorted(Y[picked][:4].tolist()) == [0, 0, 1, 1]


def test_nothing_of_the_forget_set_among_the_images_still_gives_rows():
    logits = {"original": said(Y), "unlearned": said(Y), "gold": said(Y)}
    picked = rows(Y, torch.zeros(60, dtype=torch.bool), logits, seed=0)
    assert len(picked) == explain.CLASSES * explain.EACH
