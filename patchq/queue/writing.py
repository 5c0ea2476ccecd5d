"""How a file of a queue, or beside it, is put in place: whole and durably."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


def write(path: Path, data: bytes) -> None:
    """Put a file in place: staged beside it, fsynced, then renamed.

    Raises:
        OSError: it can not be written; what was there is there still, and nothing beside it.
    """
    staged = path.with_name(f".{path.name}.new")
    try:
        with staged.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(staged, path)
    except OSError:
        with contextlib.suppress(OSError):
            staged.unlink()
        raise
