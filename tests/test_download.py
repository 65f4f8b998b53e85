"""Downloads: whole or not at all, with progress, and one sentence where there is no network."""

import gzip
import hashlib
import io
import pickle
import tarfile
from types import SimpleNamespace
from urllib.error import HTTPError, URLError

import medmnist
import numpy as np
import pytest
import torch
import torchvision.datasets as tv

from core.data import SOURCES, download
from core.data.base import silent
from core.data.examples import DataError

ONLINE = [name for name, source in SOURCES.items() if source.download]
BIG = bytes(range(256)) * 4096 * 3  # three blocks


def md5(content: bytes) -> str:
    return hashlib.md5(content).hexdigest()


class Web:
    """Addresses with contents, in place of the network; it remembers what was asked."""

    def __init__(self) -> None:
        self.pages: dict[str, bytes] = {}
        self.asked: list[str] = []
        self.cut: int | None = None

    def open(self, request, timeout):
        self.asked.append(request.full_url)
        page = self.pages[request.full_url]
        answer = io.BytesIO(page[: self.cut])
        return _Answer(answer, {"Content-Length": str(len(page))})


class _Answer(SimpleNamespace):
    def __init__(self, body: io.BytesIO, headers: dict[str, str]) -> None:
        super().__init__(read=body.read, headers=headers)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None


@pytest.fixture
def web(monkeypatch):
    web = Web()
    monkeypatch.setattr(download, "urlopen", web.open)
    return web


def get(web, report=silent, content=BIG):
    web.pages["w:/a/big.bin?x=1"] = content
    [path] = download.fetch("big", "The big one", [("w:/a/big.bin?x=1", md5(BIG))], report)
    return path


def left() -> set[str]:
    """What lies in the folder, the lock aside."""
    folder = download.home() / "data" / "big"
    return {path.name for path in folder.iterdir()} - {"download.lock"}


def test_a_file_arrives_whole_with_progress(web):
    shares = []
    path = get(web, shares.append)
    assert path.read_bytes() == BIG
    assert shares == sorted(shares)
    assert len(shares) == 3
    assert shares[-1] == 1
    assert left() == {"big.bin"}


def test_progress_goes_on_over_several_files(web):
    web.pages = {"w:/a": BIG, "w:/b": BIG}
    shares = []
    download.fetch("big", "Two", [("w:/a", md5(BIG)), ("w:/b", md5(BIG))], shares.append)
    assert shares == pytest.approx([1 / 6, 2 / 6, 3 / 6, 4 / 6, 5 / 6, 1])


def test_a_whole_file_is_not_fetched_again(web):
    assert get(web) == get(web)
    assert len(web.asked) == 1


def test_a_transfer_cut_short_leaves_nothing_and_can_be_repeated(web):
    web.cut = len(BIG) // 2
    with pytest.raises(DataError, match=r"big\.bin arrived damaged"):
        get(web)
    assert left() == set()
    web.cut = None
    assert get(web).read_bytes() == BIG


def test_half_a_file_under_the_right_name_is_not_taken_as_whole(web):
    get(web).write_bytes(BIG[:-1])
    assert get(web).read_bytes() == BIG
    assert len(web.asked) == 2


def test_whoever_stops_a_download_leaves_nothing(web):
    def stop(share):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        get(web, stop)
    assert left() == set()


def test_a_folder_that_cannot_be_written_is_named(web, monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("FORGETSCOPE_HOME", str(tmp_path / "file"))
    with pytest.raises(DataError, match=r"The big one cannot be kept in .*file/data/big"):
        get(web)


FAILURES = (
    URLError("no name"),
    HTTPError("w:/", 503, "busy", None, None),  # pyright: ignore[reportArgumentType]
    TimeoutError("slow"),
    ConnectionResetError("gone"),
)


@pytest.mark.parametrize("name", ONLINE)
@pytest.mark.parametrize("failure", FAILURES, ids=lambda f: type(f).__name__)
def test_without_a_network_every_source_says_so_plainly(name, failure, monkeypatch):
    def fail(*_, **__):
        raise failure

    monkeypatch.setattr(download, "urlopen", fail)
    with pytest.raises(DataError) as stop:
        SOURCES[name]().load()
    said = str(stop.value)
    assert "downloaded on first use" in said
    assert said.endswith("no network.")
    assert "Error" not in said


def images(n: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(n).integers(0, 256, (n, *shape), np.uint8)


def test_fashion_mnist_reads_its_four_files(web, monkeypatch):
    arrays = [images(20, 28, 28), np.arange(20) % 10, images(10, 28, 28), np.arange(10)]
    resources = []
    for (name, _), array in zip(tv.FashionMNIST.resources, arrays, strict=True):
        head = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes()
        page = gzip.compress(head + array.astype(np.uint8).tobytes())
        web.pages[tv.FashionMNIST.mirrors[0] + name] = page
        resources.append((name, md5(page)))
    monkeypatch.setattr(tv.FashionMNIST, "resources", resources)
    data = SOURCES["fashion_mnist"]().load()
    assert np.array_equal(data.train.x[:, 0].numpy(), arrays[0])
    assert np.array_equal(data.test.x[:, 0].numpy(), arrays[2])
    assert data.test.y.tolist() == list(range(10))
    assert data.test.ids.tolist() == list(range(20, 30))


def serve_cifar(web, monkeypatch, kind, labels: dict[str, int]) -> dict[str, np.ndarray]:
    """Put a small archive of torchvision's layout on the web; the pixels of each member."""
    packed, pixels = io.BytesIO(), {}
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        for i, (name, _) in enumerate(kind.train_list + kind.test_list):
            n = 200 + i
            pixels[name] = images(n, 3072)
            entry = {"data": pixels[name]} | {
                key: (np.arange(n) % k).tolist() for key, k in labels.items()
            }
            content = pickle.dumps(entry)
            member = tarfile.TarInfo(f"{kind.base_folder}/{name}")
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    web.pages[kind.url] = packed.getvalue()
    monkeypatch.setattr(kind, "tgz_md5", md5(packed.getvalue()))
    return pixels


def test_cifar10_joins_its_five_batches(web, monkeypatch):
    pixels = serve_cifar(web, monkeypatch, tv.CIFAR10, {"labels": 10})
    data = SOURCES["cifar10"]().load()
    assert data.shape == (3, 32, 32)
    assert (len(data.train), len(data.test)) == (200 + 201 + 202 + 203 + 204, 205)
    first, last = pixels["data_batch_1"][0], pixels["test_batch"][-1]
    assert np.array_equal(data.train.x[0].flatten().numpy(), first)
    assert np.array_equal(data.test.x[-1].flatten().numpy(), last)
    assert data.test.ids[0] == len(data.train)


@pytest.mark.parametrize(("argument", "k"), [("", 100), ("coarse", 20)])
def test_cifar100_has_classes_and_superclasses(web, monkeypatch, argument, k):
    serve_cifar(web, monkeypatch, tv.CIFAR100, {"fine_labels": 100, "coarse_labels": 20})
    data = SOURCES["cifar100"]().load(argument)
    assert len(data.classes) == k == data.train.y.max() + 1
    assert data.name == ":".join(filter(None, ("cifar100", argument)))


def test_cifar100_refuses_another_argument_before_any_download(web):
    with pytest.raises(DataError, match="takes coarse or nothing"):
        SOURCES["cifar100"]().load("medium")
    assert not web.asked


def test_pathmnist_keeps_the_other_clinic_apart(web, monkeypatch):
    arrays = {}
    for n, part in ((18, "train"), (10, "val"), (9, "test")):
        arrays[f"{part}_images"] = images(n, 28, 28, 3)
        arrays[f"{part}_labels"] = (np.arange(n) % 9).astype(np.uint8)[:, None]
    file = io.BytesIO()
    np.savez(file, allow_pickle=False, **arrays)
    info = medmnist.INFO["pathmnist"]
    web.pages[info["url"]] = file.getvalue()
    monkeypatch.setitem(info, "MD5", md5(file.getvalue()))
    data = SOURCES["pathmnist"]().load()
    assert data.external is not None
    for part, name in ((data.train, "train"), (data.test, "val"), (data.external, "test")):
        there = part.x.permute(0, 2, 3, 1).numpy()
        assert np.array_equal(there, arrays[f"{name}_images"])
    ids = torch.cat([data.train.ids, data.test.ids, data.external.ids])
    assert torch.equal(ids, torch.arange(37))
    assert "cancer-associated stroma" in data.classes
