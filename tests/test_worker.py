"""Workers tell how far they are, stop when told, and do not outlive their app."""

import subprocess
import sys
import time
from pathlib import Path

import pytest
from tasks import LONG, until

from core import worker
from core.pool import plain_main
from core.records import Cancelled
from core.worker import Reporter


def test_seconds_left_follow_from_what_was_measured(tmp_path):
    found = None
    for _ in range(2):
        report = Reporter(tmp_path / "job")
        report.expect(("train", "audit"), "blobs")
        report("train", 0, 100)
        time.sleep(0.2)
        report("train", 50, 100)
        found = worker.read(tmp_path / "job")
        report("audit", 0, 5)
        time.sleep(0.1)
        report.finish()
        (tmp_path / "job" / "status.json").unlink()
    assert found is not None
    assert found[0].seconds_left is not None
    assert found[0].stage_left is not None
    # 0.2 s for the other half of the training, and 0.1 s for the audit; sleeps may be late.
    assert 0.28 < found[0].seconds_left < 2
    assert 0.18 < found[0].stage_left < found[0].seconds_left


def test_no_seconds_left_are_told_before_anything_was_measured(tmp_path):
    report = Reporter(tmp_path / "job")
    report.expect(("train", "audit"), "blobs")
    report("train", 50, 100)
    found = worker.read(tmp_path / "job")
    assert found is not None
    assert found[0].seconds_left is None


def test_a_flag_stops_the_reporter(tmp_path):
    report = Reporter(tmp_path)
    report("train", 1, 2)
    (tmp_path / "cancel").touch()
    with pytest.raises(Cancelled):
        report("train", 2, 2)


APP = """
import os, signal, sys, time
from pathlib import Path
sys.path.insert(0, "tests")
from core.jobs import Jobs
from core.runs import Runs
import tasks
root = Path(sys.argv[1])
jobs = Jobs(Runs(root))
jobs.put("pid", tasks.say_pid)
while not (root / "pid.began").exists():
    time.sleep(0.01)
"""
"""An app whose worker has 100 seconds to go."""


def run_app(code: str, root: Path) -> float:
    """Seconds that the app lived on after its job had begun."""
    command = [sys.executable, "-c", code, str(root)]
    subprocess.run(command, cwd=Path(__file__).parents[1], timeout=LONG, check=False)
    return time.time() - (root / "pid.began").stat().st_mtime


def test_a_worker_does_not_outlive_its_app(tmp_path):
    run_app(f"{APP}\nos.kill(os.getpid(), signal.SIGKILL)\n", tmp_path)
    pid = int((tmp_path / "pid").read_text())
    assert until(lambda: not Path(f"/proc/{pid}").exists() or _is_zombie(pid))


def test_an_app_that_ends_cancels_its_jobs(tmp_path):
    assert run_app(APP, tmp_path) < 50  # of the 100 seconds that the job would take
    found = worker.read(tmp_path / "jobs" / "pid")
    assert found is not None
    assert found[0].state == "cancelled"


def _is_zombie(pid: int) -> bool:
    return " Z " in Path(f"/proc/{pid}/stat").read_text()


def test_the_program_that_starts_workers_is_not_imported_by_them():
    main = sys.modules["__main__"]
    with plain_main():
        assert not hasattr(sys.modules["__main__"], "__file__")
    assert sys.modules["__main__"] is main


def test_the_engines_front_imports_no_torch():
    code = (
        "import sys, core.jobs, core.runs, core.store, core.recipes, core.cli, core.report\n"
        "sys.exit('torch' in sys.modules)"
    )
    root = Path(__file__).parents[1]
    assert subprocess.run([sys.executable, "-c", code], cwd=root, check=False).returncode == 0
