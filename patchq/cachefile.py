"""Files of the user's cache: whole or not there, and no loss where they are not."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


def keep(path: Path, data: bytes) -> None:
    """Write a file and its folder; a reader sees all of it or nothing.

    A cache that cannot be written is no failure: what it keeps is made again.
    """
    import tempfile  # for who writes one: most runs find what they look for

    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, staged = tempfile.mkstemp(dir=path.parent, prefix=".new-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            os.replace(staged, path)
        except OSError:
            os.unlink(staged)
            raise
