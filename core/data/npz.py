"""NPZ file: your own pictures, in a NumPy file with MedMNIST's keys."""

import math
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar, final

import numpy as np
import torch
from numpy.lib import format as npy
from torch import Tensor

from core.data.base import Source, silent
from core.data.examples import DataError, Dataset, Examples, join, number

BOUND = 2 * 2**30
"""Bytes that the arrays may take when unpacked."""
LARGE = 64 * 2**20
"""Bytes of training pixels from which on the larger network is worth its time."""

Header = tuple[tuple[int, ...], np.dtype]


@final
class Npz(Source):
    """`train_images` (n h w, or n h w c with one or three channels, uint8), `train_labels` (n, or
    n 1, whole numbers 0..k-1), the same for `test`, and if you like `class_names` (k texts).

    `val_images` and `val_labels`: beside a test part they join the training images (every run
    holds out a validation set of its own); without a test part they are the test set.
    """

    argument: ClassVar = "the path of the file"

    def load(self, argument="", report=silent):
        if not argument:
            raise DataError("npz takes the path of a file after a colon: npz:pictures.npz.")
        path = Path(argument)
        headers = _headers(path)
        others = [name for name in ("val", "test") if f"{name}_images" in headers] or ["test"]
        first, *more, test = parts(path, "train", *others)
        train = join(first, *more)
        return Dataset(
            name=f"npz:{argument}",
            classes=_classes(path, headers, train.y, test.y),
            train=train,
            test=test,
            licence="not stated in the file",
            origin=f"Read from {path.name}.",
            model="resnet18" if train.x.numel() > LARGE else "resnet_mini",
            mirrors=False,  # nobody has said that a mirrored image is still of its class
            named="class_names" in headers,
        )

    def classes(self, argument=""):
        return ()


def parts(path: Path, *names: str) -> list[Examples]:
    """The named parts of the file, with ids that count on from one part to the next.

    Raises:
        DataError: the file is not what `Npz` describes; all but the pixels themselves is looked
            at before anything large is read.
    """
    headers = _headers(path)
    for name in names:
        _check(path, name, headers)
    found, start = [], 0
    for name in names:
        x = _images(_array(path, f"{name}_images"))
        y = _labels(path, f"{name}_labels")
        found.append(number(x, y, start))
        start += len(x)
    return found


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """One sentence for the dozen kinds of error that `zipfile` and NumPy have for a bad file."""
    try:
        yield
    except Exception:
        raise DataError(f"{path} is damaged and cannot be read.") from None


def _headers(path: Path) -> dict[str, Header]:
    """Name to shape and type of the arrays in the file, without their contents.

    Raises:
        DataError: there is no such file, or it is no sound archive of arrays.
    """
    with _reading(path):
        there, packed = path.is_file(), zipfile.is_zipfile(path)
    if not there:
        raise DataError(f"There is no file {path}.")
    if not packed:
        raise DataError(f"{path} is no npz file, or its end is missing.")
    with _reading(path), zipfile.ZipFile(path) as archive:
        members = [m for m in archive.infolist() if m.filename.endswith(".npy")]
        if sum(m.file_size for m in members) <= BOUND:
            return {m.filename.removesuffix(".npy"): _header(archive, m) for m in members}
    raise DataError(f"{path} would take more than 2 GiB of memory.")


def _header(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Header:
    read = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
    with archive.open(member) as file:
        shape, _, dtype = read[npy.read_magic(file)](file)
    # A header may promise more than the member holds, and NumPy would allocate all of it.
    if not dtype.hasobject and math.prod(shape) * dtype.itemsize > member.file_size:
        raise ValueError(member.filename)
    return shape, dtype


def _array(path: Path, key: str) -> np.ndarray:
    with _reading(path), np.load(path, allow_pickle=False) as z:
        return z[key]


def _check(path: Path, name: str, headers: Mapping[str, Header]) -> None:
    """Refuse a part whose images and labels have the wrong shape or type, or do not match."""
    images, labels = f"{name}_images", f"{name}_labels"
    for key in (images, labels):
        if key not in headers:
            raise DataError(f"{path} has no {key}; it needs them for train and for test or val.")
        if headers[key][1].hasobject:
            raise DataError(f"{key} in {path} holds Python objects, which are never read.")
    _check_images(f"{images} in {path}", *headers[images])
    _check_labels(f"{labels} in {path}", *headers[labels])
    n, m = headers[images][0][0], headers[labels][0][0]
    if n != m:
        raise DataError(f"{path} has {n} {name} images but {m} {name} labels.")


def _check_images(what: str, shape: tuple[int, ...], dtype: np.dtype) -> None:
    if dtype != np.uint8:
        raise DataError(f"{what} must be uint8, in 0..255, not {dtype}.")
    if len(shape) not in (3, 4) or (len(shape) == 4 and shape[3] not in (1, 3)):
        raise DataError(f"{what} must be n h w, n h w 1 or n h w 3, not {shape}.")
    if not math.prod(shape):
        raise DataError(f"{what} is empty.")


def _check_labels(what: str, shape: tuple[int, ...], dtype: np.dtype) -> None:
    if dtype.kind not in "iu":
        raise DataError(f"{what} must be whole numbers, not {dtype}.")
    if len(shape) not in (1, 2) or shape[1:] not in ((), (1,)):
        raise DataError(f"{what} must be one label an image (n, or n 1), not {shape}.")


def _images(array: np.ndarray) -> Tensor:
    """uint8 images (n c h w)."""
    x = torch.from_numpy(array)
    return x[:, None] if x.ndim == 3 else x.permute(0, 3, 1, 2)


def _labels(path: Path, key: str) -> Tensor:
    array = _array(path, key)
    low, high = int(array.min()), int(array.max())
    if low < 0 or high >= 2**31:
        raise DataError(f"{key} in {path} must be 0, 1, 2, ..., not {low} to {high}.")
    return torch.from_numpy(array.astype(np.int64)).flatten()


def _classes(
    path: Path, headers: Mapping[str, Header], train: Tensor, test: Tensor
) -> tuple[str, ...]:
    """The names in the file, or else the labels as texts; each has an image to train on.

    Raises:
        DataError: the labels leave a class out, or the names do not fit them.
    """
    labels = train.unique().tolist()
    k = len(labels)
    if k < 2:
        raise DataError(f"{path} holds one class only; there must be at least two.")
    if labels[-1] != k - 1:
        raise DataError(
            f"The training labels in {path} must be 0 to {k - 1} for its {k} classes, "
            f"not {labels[0]} to {labels[-1]}."
        )
    if int(test.max()) >= k:
        raise DataError(f"{path} has no training image of its test class {int(test.max())}.")
    if "class_names" not in headers:
        return tuple(map(str, range(k)))
    shape, dtype = headers["class_names"]
    if dtype.kind != "U" or shape != (k,):
        raise DataError(f"class_names in {path} must be {k} texts (a NumPy array of str).")
    names = tuple(str(n).strip() for n in _array(path, "class_names"))
    if not all(names) or len({n.casefold() for n in names}) < k:
        raise DataError(f"class_names in {path} must be {k} different names.")
    return names
