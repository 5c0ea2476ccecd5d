"""Where an answer goes that is a file: looked at before the work, written whole after it."""

from __future__ import annotations

import os
from pathlib import Path

from patchq.errors import PatchqError, UsageError
from patchq.queue import writing


def place(file: str, mend: str) -> Path:
    """Return where a file is to be written; raise before any work where that can not be.

    Raises:
        UsageError: there is no such folder, or something that is no file.
    """
    path = Path(os.path.realpath(file))
    why = None
    if not path.parent.is_dir():
        why = f"there is no folder {path.parent}"
    elif path.exists() and not path.is_file():
        why = "it is there, and it is not a file"
    elif not os.access(path.parent, os.W_OK):
        why = f"nothing can be written into {path.parent}"
    if why is None:
        return path
    raise UsageError(f"{file} cannot be written", why=why, mend=mend)


def write(path: Path, text: str) -> None:
    """Write a file, whole or not at all; what is no Unicode is written as Python spells it.

    Raises:
        PatchqError: the disk is full, or the folder has gone.
    """
    try:
        writing.write(path, text.encode(errors="backslashreplace"))
    except OSError as error:
        raise PatchqError(
            f"{path} could not be written; what was there is there still",
            why=error.strerror or str(error),
            mend=f"df {path.parent}",
        ) from error
