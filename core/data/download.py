"""Download: files from the network, whole or not at all."""

import os
from collections.abc import Sequence
from http.client import HTTPException
from pathlib import Path
from urllib.error import URLError
from urllib.request import Request, urlopen

from core.data.base import Report
from core.data.examples import DataError

__support__ = True

PATIENCE = 30.0
"""Seconds without a byte after which a server counts as unreachable."""


def home() -> Path:
    """The folder of everything kept between runs: FORGETSCOPE_HOME, or one in the user's cache."""
    return Path(os.environ.get("FORGETSCOPE_HOME") or "~/.cache/forgetscope").expanduser()


def fetch(name: str, title: str, files: Sequence[tuple[str, str]], report: Report) -> list[Path]:
    """The paths of `files`, pairs of address and MD5, in the folder of the data set `name`.

    What is there and whole is not fetched again; whoever asks meanwhile waits for the same file.

    Raises:
        DataError: a file can be neither found nor fetched; the sentence calls the set `title`.
    """
    from filelock import FileLock

    folder = home() / "data" / name
    paths = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder / "download.lock"):
            for i, (url, md5) in enumerate(files):
                path = folder / url.rpartition("/")[2].partition("?")[0]
                _complete(url, md5, path, lambda s, i=i: report((i + s) / len(files)))
                paths.append(path)
    except (URLError, HTTPException, ConnectionError, TimeoutError):
        raise DataError(
            f"{title} is downloaded on first use, but its server cannot be reached from here; "
            "fashion and digits need no network."
        ) from None
    except OSError as error:
        raise DataError(f"{title} cannot be kept in {folder}: {error.strerror}.") from None
    return paths


def _complete(url: str, md5: str, path: Path, report: Report) -> None:
    """See that `path` holds the file; it gets its name only when the last byte is right."""
    from torchvision.datasets.utils import check_integrity

    if check_integrity(path, md5):
        return report(1.0)
    part = path.with_name(path.name + ".part")
    try:
        _pull(url, part, report)
        if not check_integrity(part, md5):
            raise DataError(f"{path.name} arrived damaged from its server; please try again.")
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _pull(url: str, part: Path, report: Report) -> None:
    request = Request(url, headers={"User-Agent": "forgetscope"})
    with urlopen(request, timeout=PATIENCE) as answer, part.open("wb") as file:
        total, done = int(answer.headers.get("Content-Length") or 0), 0
        while block := answer.read(2**20):
            file.write(block)
            done += len(block)
            if total:
                report(min(1.0, done / total))
