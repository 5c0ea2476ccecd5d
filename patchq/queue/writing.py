"""How a file of a queue, or beside it, is put in place: whole and durably."""

from __future__ import annotations

import os
from pathlib import Path


def write(path: Path, data: bytes) -> None:
    """Put a file in place: staged beside it, fsynced, then renamed."""
    staged = path.with_name(f".{path.name}.new")
    with staged.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(staged, path)
