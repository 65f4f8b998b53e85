"""Jobs: asked once, done once, followed, cancelled, and survived."""

import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
from tasks import LONG, deaf, steps, until

from core import worker
from core.jobs import Jobs
from core.pool import processes
from core.recipes import Recipe, RecipeError
from core.runs import Runs
from core.worker import Reporter, Status


def fail(root: Path, report: Reporter, kind: str) -> None:
    report("train", 3, 9)
    if kind == "known":
        raise RecipeError("This cannot be.")
    if kind == "diverged":
        raise type("Diverged", (FloatingPointError,), {})("the loss became nan at step 3")
    raise KeyError("surprise")


def die(root: Path, report: Reporter) -> None:
    report("train", 1, 9)
    os.kill(os.getpid(), signal.SIGKILL)


def told(jobs: Jobs, key: str) -> Status:
    status = jobs.wait(key, LONG)
    assert status is not None
    return status


@pytest.fixture(scope="module")
def jobs(tmp_path_factory):
    # Room for two, of which one is used: each then takes half of the cores.
    made = Jobs(Runs(tmp_path_factory.mktemp("jobs")), pool=partial(processes, 2))
    yield made
    made.close()


@pytest.fixture
def threads(tmp_path):
    """Jobs in a thread of this process: another executor, and no wait for its start."""
    made = Jobs(Runs(tmp_path), pool=lambda: ThreadPoolExecutor(1))
    yield made
    made.close()


def test_a_job_is_done_in_another_process(jobs):
    key = jobs.put("whole", steps, "whole", 3)
    assert told(jobs, key) == Status("done")
    assert (jobs.runs.root / "whole.ended").exists()


def test_a_key_nobody_asked_for_has_no_status(jobs):
    for key in ("nobody", "../../etc", ""):
        assert jobs.status(key) is None
    jobs.cancel("nobody")


def test_a_killed_worker_is_a_failed_job_and_the_next_one_works(jobs):
    key = jobs.put("die", die)
    status = told(jobs, key)
    assert (status.state, status.stage) == ("failed", "train")
    assert status.reason == "The worker was killed."
    assert told(jobs, jobs.put("after", steps, "after", 1)).state == "done"


def test_cancel_stops_between_two_batches(jobs):
    root = jobs.runs.root
    key = jobs.put("long", steps, "long", 10_000, 0.01)
    assert until((root / "long.began").exists)
    jobs.cancel(key)
    began = time.monotonic()
    assert told(jobs, key).state == "cancelled"
    assert time.monotonic() - began < 5  # of the 100 seconds that the job would take
    assert not (root / "long.ended").exists()


def test_the_end_of_the_app_does_not_wait_for_a_job_that_does_not_listen(tmp_path):
    jobs = Jobs(Runs(tmp_path))
    key = jobs.put("deaf", deaf)
    assert until((tmp_path / "pid").exists)
    pid = int((tmp_path / "pid").read_text())
    jobs.close()
    assert until(lambda: gone(pid), 30)
    assert until(lambda: told(jobs, key).state == "cancelled", 30)


def gone(pid: int) -> bool:
    """Whether there is no such process; one that ended and is not yet waited for is gone too."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def test_progress_is_read_while_the_job_runs(threads):
    key = threads.put("slow", steps, "slow", 40, 0.02)
    seen = []
    assert until(lambda: seen.append(threads.status(key)) or seen[-1].state == "done")
    running = [s for s in seen if s.state == "running" and s.stage == "train"]
    assert [s.done for s in running] == sorted(s.done for s in running)
    assert any(0 < s.done < s.of == 40 for s in running)
    assert any(s.stage_left is not None and 0 < s.stage_left < 10 for s in running)


def test_two_who_ask_for_one_key_share_one_job(threads):
    for _ in range(3):
        threads.put("shared", steps, "shared", 20, 0.01)
    assert told(threads, "shared").state == "done"
    assert (threads.runs.root / "shared.began").read_text() == "x"


def test_what_people_ask_for_goes_first(threads):
    first = threads.put("first", steps, "first", 30, 0.01)
    threads.put("warm", steps, "warm", 1, urgent=False)
    threads.put("asked", steps, "asked", 1)
    assert [threads.status(k).state for k in ("warm", "asked")] == ["queued", "queued"]
    told(threads, first)
    told(threads, "warm")
    times = {k: (threads.runs.root / f"{k}.ended").stat().st_mtime_ns for k in ("warm", "asked")}
    assert times["asked"] < times["warm"]


def test_what_people_ask_for_puts_off_what_they_did_not(threads):
    root = threads.runs.root
    threads.put("warm", steps, "warm", 100, 0.01, urgent=False, group="a")
    assert until((root / "warm.began").exists)
    threads.put("same", steps, "same", 1, group="a")
    time.sleep(0.1)
    assert not (root / "same.began").exists(), "work towards the same goal was thrown away"
    threads.put("asked", steps, "asked", 1, group="b")
    told(threads, "asked")
    assert not (root / "warm.ended").exists()
    assert told(threads, "warm").state == "done"
    assert (root / "warm.began").read_text() == "xx"


def test_a_job_that_waits_can_be_cancelled(threads):
    threads.put("first", steps, "first", 30, 0.01)
    threads.put("second", steps, "second", 1)
    threads.cancel("second")
    assert threads.status("second").state == "cancelled"
    told(threads, "first")
    assert not (threads.runs.root / "second.began").exists()


def test_what_was_cancelled_can_be_asked_for_again_at_once(threads):
    key = threads.put("again", steps, "again", 50, 0.01)
    assert until((threads.runs.root / "again.began").exists)
    threads.cancel(key)
    threads.put("again", steps, "again", 50, 0.01)
    assert told(threads, key).state == "done"
    assert (threads.runs.root / "again.began").read_text() == "xx"


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("known", "This cannot be."),
        ("diverged", "The run diverged: the loss became nan at step 3."),
        ("unknown", "KeyError: 'surprise'"),
    ],
)
def test_a_failed_job_says_why_in_one_sentence(threads, kind, reason):
    key = threads.put(f"fail-{kind}", fail, kind)
    assert told(threads, key) == Status("failed", "train", reason=reason)
    log = threads.folder / key / "log.txt"
    assert "Traceback" in log.read_text()


def test_a_status_outlives_the_app_and_a_dead_apps_jobs_have_failed(tmp_path):
    gone = Jobs(Runs(tmp_path), pool=lambda: ThreadPoolExecutor(1))
    told(gone, gone.put("over", steps, "over", 1))
    gone.close()
    worker.write(gone.folder / "open", Status("running", "train", 1, 9), "an owner that is no more")
    later = Jobs(Runs(tmp_path), pool=lambda: ThreadPoolExecutor(1))
    assert later.status("over") == Status("done")
    status = later.status("open")
    assert status is not None
    assert (status.state, status.stage) == ("failed", "train")
    later.close()


def test_another_apps_running_job_is_seen_as_running(threads):
    other = Jobs(Runs(threads.runs.root), pool=lambda: ThreadPoolExecutor(1))
    key = threads.put("theirs", steps, "theirs", 50, 0.01)
    assert until((threads.runs.root / "theirs.began").exists)
    status = other.status(key)
    assert status is not None
    assert status.state in ("queued", "running")
    told(threads, key)
    assert other.status(key) == Status("done")
    other.close()


@pytest.mark.slow
def test_a_real_run_is_made_found_and_drawn(jobs):
    recipe = Recipe.parse(dataset="blobs", target="class:blob A", unlearner="mask_logits", golds=0)
    key = jobs.submit(recipe)
    assert jobs.submit(recipe) == key
    status = told(jobs, key)
    assert status == Status("done"), status
    record = jobs.runs.find(recipe)
    assert record is not None
    assert record.report["key"] == key
    assert Recipe.from_json(record.report["recipe"]) == recipe
    assert record.report["verdict"]["name"]
    figures = record.arrays("figures")
    assert len(figures["map/ids"]) == len(record.arrays("features")["original"])
    assert jobs.runs.stages(recipe) == ()
