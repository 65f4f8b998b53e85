"""Time `forgetscope app` from its start to the first complete Explore view, and weigh it.

Complete: the verdict, the strip and three drawn maps stand in Chromium. Memory is what the app
and its worker hold (proportional set size where the system tells it).

    python assets/scripts/benchmark_app.py
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import sync_playwright

PORT = 8791


def tree(pid: int) -> list[int]:
    """A process and all that it has started."""
    found = [pid]
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in task.read_text().split():
            found += tree(int(child))
    return found


def megabytes(pid: int) -> float:
    """Proportional set size of one process."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    line = next(line for line in text.splitlines() if line.startswith("Pss:"))
    return int(line.split()[1]) / 1024


def main() -> None:
    """Print seconds and megabytes."""
    env = os.environ | {"FORGETSCOPE_HOME": tempfile.mkdtemp()}
    words = [sys.executable, "-m", "core.cli", "app", "--port", str(PORT), "--no-browser"]
    with sync_playwright() as play:
        path = shutil.which("chromium")
        chrome = play.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        page = chrome.new_page(viewport={"width": 1440, "height": 900})
        start = time.perf_counter()
        app = subprocess.Popen(words, env=env, stdout=subprocess.DEVNULL)
        while True:
            try:
                page.goto(f"http://localhost:{PORT}", timeout=60_000)
                break
            except Exception:  # not up yet
                time.sleep(0.1)
        page.wait_for_selector(".fs-verdict", timeout=120_000)
        print(f"verdict: {time.perf_counter() - start:.1f} s")  # noqa: T201
        maps = "[class*=st-key-chart-map-] .js-plotly-plot .nsewdrag"
        drawn = f"document.querySelectorAll('{maps}').length === 3"
        page.wait_for_function(drawn, timeout=120_000)
        print(f"three maps: {time.perf_counter() - start:.1f} s")  # noqa: T201
        time.sleep(15)  # the worker has started and looked at the models by now
        sizes = [megabytes(pid) for pid in tree(app.pid)]
        print(f"memory: {sum(sizes):.0f} MB in {len(sizes)} processes")  # noqa: T201
        chrome.close()
        app.terminate()
        app.wait(20)


if __name__ == "__main__":
    main()
