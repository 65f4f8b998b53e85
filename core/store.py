"""Store: a folder a key, written whole or not at all, bounded in size, shared by processes."""

import errno
import os
import re
import shutil
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import filelock

GIB = 2**30
FULL = {errno.ENOSPC, errno.EDQUOT}
REFUSED = {errno.EACCES, errno.EPERM, errno.EROFS}


class StoreError(OSError):
    """Something cannot be kept or read; the text is one sentence."""


def silent() -> None:
    """A `waiting` for nobody."""


class Store:
    """Folders `root/<kind>/<key>`; the least recently used go when they are too large together.

    A writer fills a temporary folder on the same file system, which is flushed to the disk and
    renamed into place, so that a reader finds all of it or nothing.

    Raises:
        StoreError: a limit that is no number.
    """

    def __init__(self, root: Path, limit: int | None = None) -> None:
        """Bytes up to `limit`, else FORGETSCOPE_STORE_GB, else 4 GiB."""
        self.root = root
        self.limit = _limit() if limit is None else limit

    def find(self, kind: str, key: str) -> Path | None:
        """The folder kept under `key`; it counts as used now."""
        folder = self.place(kind, key)
        try:
            os.utime(folder)
        except FileNotFoundError:
            return None
        except OSError:  # a store that can only be read from
            return folder if folder.is_dir() else None
        return folder

    @contextmanager
    def write(self, kind: str, key: str) -> Iterator[Path]:
        """A temporary folder that becomes `place(kind, key)` when the block ends without error.

        The first of two writers of one key wins; the second one's folder is dropped.

        Raises:
            StoreError: the disk is full or cannot be written to.
        """
        place = self.place(kind, key)
        with self._translated(), self._temporary() as folder:
            yield folder
            self._flush(folder)
            place.parent.mkdir(parents=True, exist_ok=True)
            _rename(folder, place)
            _sync(place.parent)
        self.evict(keep=place)

    def folders(self, kind: str) -> list[Path]:
        """All folders of a kind that are kept."""
        place = self.root / _plain(kind)
        return [f for f in place.iterdir() if f.is_dir()] if place.is_dir() else []

    def add(self, kind: str, key: str, name: str, content: bytes) -> Path:
        """Put one more file into a folder that is already kept.

        Raises:
            StoreError: the folder is gone, or the disk is full or cannot be written to.
        """
        folder = self.place(kind, key)
        with self._translated(), self._temporary() as temporary:
            (temporary / _plain(name)).write_bytes(content)
            self._flush(temporary)
            try:
                (temporary / name).replace(folder / name)
            except FileNotFoundError:
                raise StoreError("This result is no longer kept; run it again.") from None
            _sync(folder)
        self.evict(keep=folder)
        return folder / name

    @contextmanager
    def lock(self, kind: str, key: str, waiting: Callable[[], None] = silent) -> Iterator[None]:
        """One process at a time; `waiting` is called five times a second and may raise."""
        path = self.root / "locks" / f"{_plain(kind)}-{_plain(key)}"
        with self._translated():
            path.parent.mkdir(parents=True, exist_ok=True)
        lock = filelock.FileLock(path)
        while True:
            try:
                with self._translated():
                    lock.acquire(timeout=0.2)
                break
            except filelock.Timeout:
                waiting()
        try:
            yield
        finally:
            lock.release()

    def evict(self, keep: Path | None = None) -> None:
        """Drop the least recently used folders, `keep` excepted, until the limit is met."""
        found = sorted(self._kept(), key=lambda item: item[0])
        total = sum(size for _, size, _ in found)
        for _, size, folder in found:
            if total <= self.limit:
                return
            if folder != keep:
                self._drop(folder)
                total -= size

    def sweep(self) -> None:
        """Remove what writers that were killed have left behind."""
        for mark in self._scratch.glob("*.lock"):
            with suppress(filelock.Timeout, OSError), filelock.FileLock(mark, timeout=0):
                shutil.rmtree(mark.with_suffix(""), ignore_errors=True)
                mark.unlink(missing_ok=True)

    @property
    def _scratch(self) -> Path:
        return self.root / "tmp"

    def place(self, kind: str, key: str) -> Path:
        """Where the folder of `key` is, or would be.

        Raises:
            StoreError: a name that would lead elsewhere.
        """
        return self.root / _plain(kind) / _plain(key)

    @contextmanager
    def _temporary(self) -> Iterator[Path]:
        # The lock tells `sweep` that the writer is alive: the system frees it when a process dies.
        self._scratch.mkdir(parents=True, exist_ok=True)
        folder = self._scratch / uuid.uuid4().hex
        mark = folder.with_suffix(".lock")
        with filelock.FileLock(mark):
            try:
                folder.mkdir()
                yield folder
            finally:
                shutil.rmtree(folder, ignore_errors=True)
                mark.unlink(missing_ok=True)

    def _flush(self, folder: Path) -> None:
        for path in [*folder.rglob("*"), folder]:
            _sync(path)

    def _kept(self) -> Iterator[tuple[float, int, Path]]:
        for kind in ("runs", "models"):
            for folder in (self.root / kind).glob("*"):
                with suppress(FileNotFoundError):
                    size = sum(f.stat().st_size for f in folder.iterdir())
                    yield folder.stat().st_mtime, size, folder

    def _drop(self, folder: Path) -> None:
        # Renamed first: a reader must not find a folder that is half removed.
        with suppress(OSError), self._temporary() as temporary:
            folder.rename(temporary / folder.name)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (StoreError, filelock.Timeout):
            raise
        except OSError as error:
            if error.errno in FULL:
                raise StoreError(
                    f"The disk is full, nothing was kept: free some space under {self.root},"
                    " or set FORGETSCOPE_HOME to another folder."
                ) from error
            if error.errno in REFUSED:
                raise StoreError(
                    f"{self.root} cannot be written to; set FORGETSCOPE_HOME to another folder."
                ) from error
            raise


def _rename(folder: Path, place: Path) -> None:
    try:
        folder.rename(place)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):  # another writer was first
            raise


def _sync(path: Path) -> None:
    if os.name == "nt" and path.is_dir():  # folders cannot be opened there
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _plain(name: str) -> str:
    """A name that stays inside its folder."""
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}", name):
        raise StoreError(f"{name!r} is no name of something that is kept here.")
    return name


def _limit() -> int:
    text = os.environ.get("FORGETSCOPE_STORE_GB", "4")
    try:
        limit = int(float(text) * GIB)
    except (ValueError, OverflowError):
        limit = -1
    if limit < 0:
        raise StoreError(f"FORGETSCOPE_STORE_GB must be a number of gigabytes, not {text!r}.")
    return limit
