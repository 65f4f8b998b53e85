"""Arrays: plain numbers in `.npz` files, without pickles."""

import io
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from core.store import StoreError

if TYPE_CHECKING:
    import numpy as np

# numpy is imported where it is used: the command line does not need it to say no.


def save_arrays(path: Path, arrays: "Mapping[str, np.ndarray]") -> None:
    """Write an `.npz` file of plain numbers.

    Raises:
        StoreError: an array of objects, which only a pickle could hold.
    """
    path.write_bytes(packed(arrays))


def packed(arrays: "Mapping[str, np.ndarray]") -> bytes:
    """The content of such a file."""
    import numpy as np

    for name, array in arrays.items():
        if array.dtype.hasobject:
            raise StoreError(f"{name} is no array of numbers.")
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **dict(arrays))  # pyright: ignore[reportArgumentType]
    return buffer.getvalue()


def load_arrays(path: Path) -> "dict[str, np.ndarray]":
    """Read an `.npz` file; pickles are refused.

    Raises:
        StoreError: it is not there (any more), or is no such file.
    """
    import numpy as np

    try:
        with np.load(path, allow_pickle=False) as found:
            return {name: found[name] for name in found.files}
    except FileNotFoundError:
        raise StoreError(f"{path.name} is not kept for this result; make it again.") from None
    except (ValueError, zipfile.BadZipFile, EOFError):
        raise StoreError(f"{path.name} is no file of arrays.") from None
