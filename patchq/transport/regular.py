"""Files of the user's that are read: regular ones, and the null device.

Another device, a pipe or a folder in their place would be read for ever, or not at all.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from pathlib import Path

# The process, or the system, has as many files open as it may: no property of a file.
_EXHAUSTED = frozenset({errno.EMFILE, errno.ENFILE})


def text(path: Path) -> str:
    """Return what stands in a file; bytes that are no UTF-8 are surrogates.

    Raises:
        OSError: it cannot be opened, or is no regular file.
    """
    number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    with open(number, "rb") as file:
        status = os.fstat(number)
        if _is_null(status):
            return ""
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "it is no regular file", str(path))
        return file.read().decode(errors="surrogateescape").replace("\r\n", "\n")


def is_other(path: Path) -> bool:
    """Return whether there is something in the place of a file that is none."""
    with contextlib.suppress(OSError, ValueError):
        return not stat.S_ISREG(path.stat().st_mode)
    return False


def is_exhausted(error: BaseException) -> bool:
    """Return whether too many files were open, which says nothing of the file."""
    return isinstance(error, OSError) and error.errno in _EXHAUSTED


def _is_null(status: os.stat_result) -> bool:
    return stat.S_ISCHR(status.st_mode) and status.st_rdev == os.stat(os.devnull).st_rdev
