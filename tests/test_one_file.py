"""A new method is one file: put into a copy of this project, it is everywhere at once."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

METHOD = '''"""Shrink: makes the forgotten classes' rows of the head small, and stops there."""

from dataclasses import dataclass
from typing import ClassVar, final

import torch

from core.knobs import knob
from core.unlearners.base import Citation, Unlearner


@final
@dataclass(frozen=True, kw_only=True)
class Shrink(Unlearner):
    """w_u -> share * w_u, for a test of how little a new method takes."""

    cite: ClassVar = Citation("Nobody", 2026, "Nothing", "example.org")
    needs: ClassVar = frozenset({"head"})
    levels: ClassVar = frozenset({"class"})

    left: float = knob(0.25, 0.0, 1.0, "share of the rows that is left")

    def run(self, model, teacher, split, target, rng, on_step):
        with torch.no_grad():
            model.head.weight[list(target.labels)] *= self.left
        on_step(1, 1)
'''

SCRIPT = """
import json, os
from streamlit.testing.v1 import AppTest

import core.unlearners
from core.unlearners import UNLEARNERS

core_file = core.unlearners.__file__
core.jobs = __import__("core.jobs", fromlist=["Jobs"])
core.jobs.Jobs.put = lambda self, key, *rest, **options: key  # no worker is wanted here

app = AppTest.from_file(os.path.abspath("app/main.py"), default_timeout=120)
app.query_params["dataset"] = "blobs"
app.query_params["unlearner"] = "shrink"
app.query_params["knob.left"] = "0.5"
app.run()
print(json.dumps({
    "file": core_file,
    "registry": "shrink" in UNLEARNERS,
    "exception": [str(e.message) for e in app.exception],
    "options": app.selectbox(key="form_unlearner").options,
    "knob": app.slider(key="form_shrink_left").value,
}))
"""


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """The project elsewhere, with one file more."""
    root = tmp_path_factory.mktemp("copy")
    for name in ("core", "app"):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    (root / "assets").symlink_to(ROOT / "assets")
    (root / "core" / "unlearners" / "shrink.py").write_text(METHOD)
    return root


def run(root: Path, *words: str) -> str:
    env = os.environ | {"PYTHONPATH": str(root), "FORGETSCOPE_HOME": str(root / "home")}
    done = subprocess.run(
        [sys.executable, *words], cwd=root, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_it_is_short_enough():
    assert METHOD.count("\n") <= 60


def test_the_registry_and_the_form_have_it(copy):
    found = json.loads(run(copy, "-c", SCRIPT).splitlines()[-1])
    assert found["file"].startswith(str(copy))
    assert found["registry"]
    assert found["exception"] == []
    assert "Shrink" in found["options"]
    assert found["knob"] == 0.5


def test_the_command_line_has_it_and_runs_it(copy):
    listed = json.loads(run(copy, "-m", "core.cli", "list", "unlearners", "--json"))
    mine = next(one for one in listed if one["name"] == "shrink")
    assert [knob["name"] for knob in mine["knobs"]] == ["left"]
    words = ["--dataset", "blobs", "--forget", "class:blob A", "--golds", "0", "--json", "out.json"]
    run(copy, "-m", "core.cli", "run", *words, "--unlearner", "shrink", "--set", "left=0")
    report = json.loads((copy / "out.json").read_text())
    assert report["recipe"]["unlearner"] == {"name": "shrink", "settings": {"left": 0.0}}
