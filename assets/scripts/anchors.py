"""Rebuild `assets/anchors/anchors.npz`, byte for byte, from `assets/anchors/descriptions.json`.

A class is the text of its phrases, joined by "; ", without its name. TF-IDF over the words and
word pairs of a data set's classes gives vectors of unit length; their singular vectors give as
many coordinates as there are classes, with the very same cosines.

    python assets/scripts/anchors.py [--out FILE]
"""

import argparse
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

FOLDER = Path(__file__).parents[1] / "anchors"
TEXT, OUT = FOLDER / "descriptions.json", FOLDER / "anchors.npz"


def embed(texts: Sequence[str]) -> np.ndarray:
    """Unit vectors (k k) with the cosines of the texts' TF-IDF vectors."""
    words = TfidfVectorizer(ngram_range=(1, 2), token_pattern=r"\w+", sublinear_tf=True)
    u, s, _ = np.linalg.svd(words.fit_transform(texts).toarray(), full_matrices=False)
    # Singular vectors are unique but for their signs, which another LAPACK may choose otherwise.
    signs = np.sign(u[np.abs(u).argmax(0), np.arange(len(s))])
    # Nor do its last bits matter: six decimals are the same everywhere.
    return np.round(u * s * signs, 6).astype(np.float32)


def build(out: Path) -> str:
    """Write the file and return its SHA-256."""
    raw = TEXT.read_bytes()
    arrays = {"text_sha256": np.array(hashlib.sha256(raw).hexdigest())}
    for name, classes in json.loads(raw).items():
        arrays[f"{name}_classes"] = np.array(list(classes))
        arrays[f"{name}_anchors"] = embed(["; ".join(phrases) for phrases in classes.values()])
    out.parent.mkdir(parents=True, exist_ok=True)
    with out.open("wb") as file:
        np.savez(file, **arrays)  # pyright: ignore[reportArgumentType]
    return hashlib.sha256(out.read_bytes()).hexdigest()


if __name__ == "__main__":
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--out", type=Path, default=OUT)
    path = asked.parse_args().out
    digest = build(path)
    print(f"{path.name}: {path.stat().st_size / 1e3:.1f} kB, sha256 {digest}")  # noqa: T201
