"""Files of one's own: good ones are read as they are, bad ones refused in one sentence."""

import io
import os
import re
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.data import load, npz
from core.data.examples import DataError
from core.data.npz import Npz

RNG = np.random.default_rng(0)


def arrays(**changes) -> dict[str, np.ndarray]:
    """A sound file's arrays: 6 + 4 grey images of 5x4 pixels, two classes; None leaves one out."""
    sound = {
        "train_images": RNG.integers(0, 256, (6, 5, 4), np.uint8),
        "train_labels": np.array([0, 1, 0, 1, 0, 1])[:, None],
        "test_images": RNG.integers(0, 256, (4, 5, 4), np.uint8),
        "test_labels": np.array([0, 1, 1, 0], np.uint8),
    }
    return {key: value for key, value in (sound | changes).items() if value is not None}


def packed(**changes) -> bytes:
    return pack(arrays(**changes))


def pack(content: dict[str, np.ndarray], save=np.savez) -> bytes:
    file = io.BytesIO()
    save(file, allow_pickle=True, **content)
    return file.getvalue()


@pytest.fixture
def file(tmp_path):
    return tmp_path / "own.npz"


def refusal(path) -> str:
    """The sentence by which `path` is refused."""
    with pytest.raises(DataError) as stop:
        Npz().load(str(path))
    said = str(stop.value)
    assert re.fullmatch(r"[^\n]+[a-z0-9)]\.", said)
    return said


def test_grey_images_have_one_channel_and_keep_their_pixels(file):
    sound = arrays()
    file.write_bytes(pack(sound))
    data = Npz().load(str(file))
    assert data.shape == (1, 5, 4)
    assert np.array_equal(data.train.x[:, 0].numpy(), sound["train_images"])
    assert data.train.y.tolist() == [0, 1, 0, 1, 0, 1]
    assert data.test.ids.tolist() == [6, 7, 8, 9]
    assert (data.classes, data.model) == (("0", "1"), "resnet_mini")


@pytest.mark.parametrize("c", [1, 3])
def test_channels_come_first(file, c):
    images = {f"{p}_images": RNG.integers(0, 256, (n, 5, 4, c), np.uint8) for p, n in PARTS}
    file.write_bytes(pack(arrays(**images), np.savez_compressed))
    data = Npz().load(str(file))
    assert data.shape == (c, 5, 4)
    assert np.array_equal(data.test.x.permute(0, 2, 3, 1).numpy(), images["test_images"])


PARTS = (("train", 6), ("test", 4))
VAL = {"val_images": np.full((3, 5, 4), 7, np.uint8), "val_labels": np.array([0, 1, 1])}


def test_validation_images_join_the_training_set(file):
    file.write_bytes(packed(**VAL))
    data = Npz().load(str(file))
    assert (len(data.train), len(data.test)) == (9, 4)
    assert (data.train.x[6:] == 7).all()
    assert data.test.ids.tolist() == [9, 10, 11, 12]


def test_validation_images_are_the_test_set_where_there_is_no_other(file):
    file.write_bytes(packed(test_images=None, test_labels=None, **VAL))
    data = Npz().load(str(file))
    assert (len(data.train), len(data.test)) == (6, 3)
    assert (data.test.x == 7).all()


def test_class_names_are_read(file):
    file.write_bytes(packed(class_names=np.array(["Tube, thin", "<b>Tube</b>"])))
    assert Npz().load(str(file)).classes == ("Tube, thin", "<b>Tube</b>")


def test_many_pixels_ask_for_the_larger_network(file, monkeypatch):
    file.write_bytes(packed())
    monkeypatch.setattr(npz, "LARGE", 6 * 5 * 4 - 1)
    assert Npz().load(str(file)).model == "resnet18"


def test_a_changed_file_is_read_again(file):
    file.write_bytes(packed())
    before = load(f"npz:{file}")
    assert load(f"npz:{file}") is before
    file.write_bytes(packed(class_names=np.array(["x", "y"])))
    os.utime(file, (1, 1))  # two writes may share a time stamp
    assert load(f"npz:{file}").classes == ("x", "y")


def test_a_path_is_needed_and_a_file_behind_it(tmp_path):
    with pytest.raises(DataError, match="path of a file after a colon"):
        load("npz")
    assert "There is no file" in refusal(tmp_path / "none.npz")
    assert "There is no file" in refusal(tmp_path)


U8 = np.zeros((6, 5, 4), np.uint8)
BAD = {
    "has no train_images": {"train_images": None},
    "has no train_labels": {"train_labels": None},
    "has no test_images": {"test_images": None},
    "has no test_labels": {"test_labels": None},
    "train_images in .* holds Python objects": {"train_images": np.array([{}], object)},
    "test_labels in .* holds Python objects": {"test_labels": np.array([0, "1"], object)},
    "must be uint8, in 0..255, not float32": {"train_images": U8.astype(np.float32)},
    r"must be n h w, .* not \(6, 20\)": {"train_images": U8.reshape(6, 20)},
    r"must be n h w, .* not \(6, 5, 2, 2\)": {"train_images": U8.reshape(6, 5, 2, 2)},
    "train_images in .* is empty": {"train_images": U8[:0], "train_labels": np.zeros(0, int)},
    "test_images in .* is empty": {"test_images": U8[:4, :0]},
    "must be whole numbers, not float64": {"train_labels": np.zeros(6)},
    r"one label an image .* not \(6, 2\)": {"train_labels": np.zeros((6, 2), int)},
    "6 train images but 5 train labels": {"train_labels": np.array([0, 1, 0, 1, 0])},
    "one class only": {"train_labels": np.zeros(6, int)},
    "must be 0 to 1 for its 2 classes, not 1 to 2": {"train_labels": np.array([1, 2] * 3)},
    "must be 0 to 1 for its 2 classes, not 0 to 2": {"train_labels": np.array([0, 2] * 3)},
    "must be 0, 1, 2, ..., not -1 to 1": {"train_labels": np.array([-1, 1] * 3)},
    "not 0 to 18446744073709551615": {"test_labels": np.array([0, 0, 0, -1]).astype(np.uint64)},
    "no training image of its test class 7": {"test_labels": np.array([0, 1, 7, 0])},
    "differ in size": {"test_images": np.zeros((4, 5, 5), np.uint8)},
    "class_names in .* must be 2 texts": {"class_names": np.array(["a", "b", "c"])},
    "must be 2 texts": {"class_names": np.array([1, 2])},
    "must be 2 different names": {"class_names": np.array(["Cat", "cat "])},
}


@pytest.mark.parametrize("why", BAD)
def test_a_bad_file_is_refused_in_one_sentence(file, why):
    file.write_bytes(packed(**BAD[why]))
    assert re.search(why, refusal(file))


def test_something_else_under_the_name_is_refused(file):
    for content in (b"", b"\x89PNG\r\n\x1a\n" + bytes(100), b"\x93NUMPY\x01\x00"):
        file.write_bytes(content)
        assert "is no npz file" in refusal(file)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.99])
def test_a_file_that_was_cut_short_is_refused(file, share):
    whole = packed()
    file.write_bytes(whole[: int(share * len(whole))])
    assert "its end is missing" in refusal(file)


def test_a_flipped_pixel_bit_is_found_by_the_checksum(file):
    sound = arrays()
    file.write_bytes(pack(sound))
    raw = bytearray(file.read_bytes())
    raw[raw.index(sound["train_images"].tobytes()) + 50] ^= 1
    file.write_bytes(raw)
    assert "is damaged" in refusal(file)


def test_a_huge_file_is_refused_before_it_is_unpacked(file, monkeypatch):
    monkeypatch.setattr(npz, "_array", lambda *_: pytest.fail("it was unpacked"))
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("train_images", "test_images"):
            with archive.open(f"{name}.npy", "w") as member:
                member.write(bytes(1000))
    raw = bytearray(file.read_bytes())
    for found in re.finditer(b"PK\x01\x02", bytes(raw)):  # the directory's word on their sizes
        raw[found.start() + 24 : found.start() + 28] = (2**30 + 1).to_bytes(4, "little")
    file.write_bytes(raw)
    assert "more than 2 GiB" in refusal(file)


def test_a_header_that_promises_more_than_there_is_is_refused_before_memory_is_taken(file):
    forged = io.BytesIO()
    header = {"descr": "|u1", "fortran_order": False, "shape": (2**40, 5, 4)}
    np.lib.format.write_array_header_1_0(forged, header)
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("train_images.npy", forged.getvalue() + bytes(120))
    assert "is damaged" in refusal(file)


SOUND = packed(class_names=np.array(["a", "b"]))


@given(st.lists(st.tuples(st.integers(0, len(SOUND) - 1), st.integers(0, 255)), min_size=1))
def test_no_damage_raises_anything_but_a_data_error(tmp_path_factory, changes):
    raw = bytearray(SOUND)
    for place, byte in changes:
        raw[place] = byte
    path = tmp_path_factory.getbasetemp() / "damaged.npz"
    path.write_bytes(raw)
    raised = None
    try:
        Npz().load(str(path))
    except Exception as why:
        raised = why
    assert isinstance(raised, DataError | None)
