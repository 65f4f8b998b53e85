"""Make the finished run that the first visit shows, and put it under `assets/runs`.

To be run again whenever a test says that the shipped run is stale: its key covers the code that
makes and judges models.

    python assets/scripts/runs.py
"""

import shutil
import tempfile
from pathlib import Path

from app.address import read
from core.runs import Runs

OUT = Path(__file__).parents[1] / "runs"
METHODS = ("pca", "tsne", "umap")


def build() -> Path:
    """Make the run and its three maps in a store of its own, then copy what pages read."""
    recipe = read({}).recipe
    with tempfile.TemporaryDirectory() as folder:
        runs = Runs(Path(folder))
        shutil.rmtree(OUT, ignore_errors=True)
        record = runs.make(recipe)
        for method in METHODS:
            runs.layout(recipe, method)
        out = OUT / record.key
        out.mkdir(parents=True)
        for name in ("recipe.json", "report.json"):
            shutil.copy(record.path / name, out)
        for file in record.path.glob("*.npz"):
            if file.stem != "features":  # only made to arrange maps, which are shipped
                shutil.copy(file, out)
    return out


if __name__ == "__main__":
    made = build()
    size = sum(f.stat().st_size for f in made.iterdir()) / 1e6
    print(f"{made.name}: {size:.2f} MB")  # noqa: T201
