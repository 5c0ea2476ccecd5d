"""Reading a queue's files: regular ones, of a size that a person could have written."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from patchq.errors import UsageError

# A diff of all of vLLM between two releases has 7 MB.
LIMIT = 64 << 20


def read(path: Path) -> bytes | None:
    """Return the bytes of a file, None where there is none.

    Raises:
        UsageError: it is no regular file, too large, or cannot be read.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise _unread(path, str(error)) from error
    facts = os.fstat(handle)
    if not stat.S_ISREG(facts.st_mode):
        os.close(handle)
        raise _unread(path, "it is not a regular file")
    with os.fdopen(handle, "rb") as file:
        if facts.st_size > LIMIT:
            raise _unread(path, f"it has {facts.st_size} bytes; the limit is {LIMIT}")
        try:
            return file.read(LIMIT + 1)
        except OSError as error:
            raise _unread(path, str(error)) from error


def _unread(path: Path, why: str) -> UsageError:
    return UsageError(f"{path} cannot be read", why=why, mend="correct the queue, then try again")
