"""The store holds whole folders only, whatever happens to those who write them."""

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from core import store as module
from core.arrays import load_arrays, save_arrays
from core.store import Store, StoreError

ROOT = str(Path(__file__).parents[1])

WRITER = """
import sys, time
from pathlib import Path
from core.store import Store
with Store(Path(sys.argv[1])).write("runs", "k") as folder:
    (folder / "half").write_bytes(b"x" * 1000)
    print("half", flush=True)
    time.sleep(60)
"""

RACER = """
import sys, time
from pathlib import Path
from core.store import Store
store = Store(Path(sys.argv[1]))
with store.lock("runs", "k"):
    if store.find("runs", "k") is None:
        time.sleep(0.2)
        with store.write("runs", "k") as folder:
            (folder / "a").write_text("a")
        print("made")
"""


def start(code: str, root: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", code, str(root)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def put(store: Store, key: str, size: int = 1, kind: str = "runs") -> None:
    with store.write(kind, key) as folder:
        (folder / "a").write_bytes(b"x" * size)


def test_what_is_written_is_found(tmp_path):
    put(Store(tmp_path), "k")
    found = Store(tmp_path).find("runs", "k")
    assert found is not None
    assert (found / "a").read_bytes() == b"x"
    assert Store(tmp_path).find("models", "k") is None


def test_nothing_is_found_before_the_writer_is_done(tmp_path):
    store = Store(tmp_path)
    with store.write("runs", "k") as folder:
        (folder / "a").write_text("a")
        assert store.find("runs", "k") is None
    assert store.find("runs", "k") is not None


def test_a_writer_that_fails_leaves_nothing(tmp_path):
    store = Store(tmp_path)

    def fail() -> None:
        with store.write("runs", "k") as folder:
            (folder / "a").write_text("a")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert store.find("runs", "k") is None
    assert not list((tmp_path / "tmp").iterdir())


def test_a_killed_writer_leaves_nothing_that_is_found_and_is_swept(tmp_path):
    store = Store(tmp_path)
    writer = start(WRITER, tmp_path)
    assert writer.stdout is not None
    writer.stdout.readline()
    store.sweep()
    assert list((tmp_path / "tmp").glob("*/half")), "a living writer's folder was swept"
    writer.send_signal(signal.SIGKILL)
    writer.wait()
    writer.stdout.close()
    assert store.find("runs", "k") is None
    store.sweep()
    assert not list((tmp_path / "tmp").iterdir())
    put(store, "k")
    assert store.find("runs", "k") is not None


def test_of_two_processes_that_want_one_key_one_makes_it(tmp_path):
    racers = [start(RACER, tmp_path) for _ in range(2)]
    said = [racer.communicate(timeout=60)[0] for racer in racers]
    assert sorted(said) == ["", "made\n"]


def test_the_first_of_two_writers_wins(tmp_path):
    store = Store(tmp_path)
    with store.write("runs", "k") as late:
        (late / "a").write_text("late")
        with store.write("runs", "k") as early:
            (early / "a").write_text("early")
    found = store.find("runs", "k")
    assert found is not None
    assert (found / "a").read_text() == "early"
    assert not list((tmp_path / "tmp").iterdir())


def test_whoever_waits_for_a_lock_can_give_up(tmp_path):
    def give_up() -> None:
        raise InterruptedError

    store = Store(tmp_path)
    with store.lock("runs", "k"), pytest.raises(InterruptedError):  # noqa: SIM117
        with store.lock("runs", "k", give_up):
            pass


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_one_sentence_and_leaves_nothing(tmp_path, monkeypatch, code):
    store = Store(tmp_path)

    def full(path: Path) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(module, "_sync", full)
    with pytest.raises(StoreError, match="The disk is full") as caught:
        put(store, "k")
    assert "\n" not in str(caught.value)
    assert store.find("runs", "k") is None
    assert not list((tmp_path / "tmp").iterdir())


def test_a_full_disk_during_the_writing_itself_is_told_alike(tmp_path):
    store = Store(tmp_path)
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("this system has no /dev/full")
    with pytest.raises(StoreError, match="The disk is full"), store.write("runs", "k"):
        full.write_bytes(b"x")
    assert store.find("runs", "k") is None


def test_the_least_recently_used_go_first(tmp_path):
    store = Store(tmp_path, limit=250)
    for age, key in enumerate(("a", "b")):
        put(store, key, 100)
        os.utime(store.place("runs", key), (1000 + age, 1000 + age))
    store.find("runs", "a")
    put(store, "c", 100, kind="models")
    kept = [k for k in ("a", "b") if store.find("runs", k)]
    assert kept == ["a"]
    assert store.find("models", "c") is not None
    assert not list((tmp_path / "tmp").iterdir())


def test_what_was_just_written_stays_even_if_it_is_too_large(tmp_path):
    store = Store(tmp_path, limit=10)
    put(store, "a", 100)
    assert store.find("runs", "a") is not None


def test_a_file_is_added_whole_to_what_is_kept(tmp_path):
    store = Store(tmp_path)
    put(store, "k")
    path = store.add("runs", "k", "b.npz", b"12")
    assert path.read_bytes() == b"12"
    with pytest.raises(StoreError, match="no longer kept"):
        store.add("runs", "gone", "b.npz", b"12")


@pytest.mark.parametrize("name", ["../x", "a/b", "", ".", "..", "a\0", "/etc", "a\n", "x" * 300])
def test_names_cannot_lead_out_of_the_store(tmp_path, name):
    with pytest.raises(StoreError, match="no name"):
        Store(tmp_path).find("runs", name)


@pytest.mark.parametrize("text", ["much", "-1", "nan", "inf", ""])
def test_a_limit_that_is_no_number_is_one_sentence(tmp_path, monkeypatch, text):
    monkeypatch.setenv("FORGETSCOPE_STORE_GB", text)
    with pytest.raises(StoreError, match="FORGETSCOPE_STORE_GB"):
        Store(tmp_path)


def test_the_limit_is_read_from_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("FORGETSCOPE_STORE_GB", "0.5")
    assert Store(tmp_path).limit == 2**29


def test_arrays_come_back_and_pickles_do_not(tmp_path):
    save_arrays(tmp_path / "a.npz", {"x/y": np.arange(3), "t": np.array(["a"])})
    found = load_arrays(tmp_path / "a.npz")
    assert found["x/y"].tolist() == [0, 1, 2]
    with pytest.raises(StoreError, match="no array of numbers"):
        save_arrays(tmp_path / "b.npz", {"o": np.array([{}], dtype=object)})
    np.savez(tmp_path / "c.npz", o=np.array([{}], dtype=object))
    with pytest.raises(StoreError, match="no file of arrays"):
        load_arrays(tmp_path / "c.npz")
    with pytest.raises(StoreError, match="not kept"):
        load_arrays(tmp_path / "none.npz")


def test_finding_does_not_wait_for_writers(tmp_path):
    store = Store(tmp_path)
    put(store, "k")
    with store.lock("runs", "k"):
        began = time.monotonic()
        assert store.find("runs", "k") is not None
        assert time.monotonic() - began < 0.15  # a wait for the lock takes 0.2 s at least
