"""Rebuild `assets/data/fashion.npz`, byte for byte: a stratified subset of Fashion-MNIST.

1,200 training and 300 test images a class, drawn with a fixed seed from the official train and
test sets. Reads Debian's package `dataset-fashion-mnist` where it is installed, else lets
torchvision download the original files.

    python assets/scripts/fashion.py [--out FILE]
"""

import argparse
import gzip
import hashlib
import struct
import tempfile
from pathlib import Path

import numpy as np

SEED, PER_CLASS = 20261130, {"train": 1200, "test": 300}
DEBIAN = Path("/usr/share/datasets/fashion-mnist")
OUT = Path(__file__).parents[1] / "data" / "fashion.npz"


def source() -> Path:
    """A folder that holds the four official files."""
    if DEBIAN.is_dir():
        return DEBIAN
    from torchvision.datasets import FashionMNIST

    folder = Path(tempfile.mkdtemp())
    FashionMNIST(folder, download=True)
    return folder / "FashionMNIST" / "raw"


def idx(path: Path) -> np.ndarray:
    """The array in an IDX file, gzipped or not."""
    raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    dims = raw[3]
    shape = struct.unpack(f">{dims}I", raw[4 : 4 + 4 * dims])
    return np.frombuffer(raw, np.uint8, offset=4 + 4 * dims).reshape(shape)


def subset(labels: np.ndarray, per_class: int, rng: np.random.Generator) -> np.ndarray:
    """Sorted row numbers, `per_class` of each label."""
    rows = [rng.choice(np.flatnonzero(labels == c), per_class, replace=False) for c in range(10)]
    return np.sort(np.concatenate(rows))


def build(out: Path) -> str:
    """Write the file and return its SHA-256."""
    folder, arrays = source(), {}
    rng = np.random.Generator(np.random.PCG64(SEED))
    for split, stem in (("train", "train"), ("test", "t10k")):
        found = {k: next(folder.glob(f"{stem}-{k}*")) for k in ("images", "labels")}
        labels = idx(found["labels"])
        rows = subset(labels, PER_CLASS[split], rng)
        arrays[f"{split}_images"] = idx(found["images"])[rows]
        arrays[f"{split}_labels"] = labels[rows]
        arrays[f"{split}_source_rows"] = rows.astype(np.uint16)
    out.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(out, **arrays)
    return hashlib.sha256(out.read_bytes()).hexdigest()


if __name__ == "__main__":
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--out", type=Path, default=OUT)
    path = asked.parse_args().out
    digest = build(path)
    print(f"{path.name}: {path.stat().st_size / 1e6:.2f} MB, sha256 {digest}")  # noqa: T201
