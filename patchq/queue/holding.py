"""One writer of a queue's files at a time: a lock on its folder, held while a verb edits.

It is flock(2) on the folder itself, so that nothing is left behind and the kernel lets go of it
whatever becomes of the process. Who has to wait waits a while: an edit takes a second.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
from pathlib import Path

from patchq.errors import PatchqError
from patchq.queue import undoing

# Seconds that a verb waits for another one, and between two looks.
_PATIENCE, _PAUSE = 30.0, 0.05
# NFS locks only what is open for writing, which a folder never is.
_NO_LOCKS = (
    errno.EBADF,
    errno.ENOLCK,
    errno.ENOTSUP,
    errno.EOPNOTSUPP,
    errno.ENOSYS,
    errno.EINVAL,
)


class Holds:
    """The queues that a run holds, by their folders; `release` lets go of all."""

    def __init__(self) -> None:
        self._held: dict[Path, int] = {}

    def take(self, folder: Path, patience: float = _PATIENCE) -> None:
        """Hold a queue's folder, once; wait for who holds it, `patience` seconds.

        A file system without locks has no protection: it is not refused for that.

        Raises:
            PatchqError: another patchq holds it for longer.
        """
        folder = folder.resolve()
        if folder in self._held or not folder.is_dir():
            return
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        until = time.monotonic() + patience
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError as error:
                if error.errno in _NO_LOCKS:
                    break
                if error.errno != errno.EWOULDBLOCK or time.monotonic() > until:
                    os.close(handle)
                    raise _busy(folder, patience) from error
            time.sleep(_PAUSE)
        self._held[folder] = handle

    def release(self) -> None:
        """Let go of all."""
        while self._held:
            os.close(self._held.popitem()[1])

    def __del__(self) -> None:
        """Let go where a run was dropped without a word."""
        self.release()


def settled(folder: Path) -> tuple[str, ...]:
    """Take back an edit of a queue that was cut short; return what is to be said of it.

    For verbs that read the queue's files before they write them, and do not hold it.

    Raises:
        PatchqError: it can not be taken back.
    """
    if not undoing.is_cut_short(folder):
        return ()
    holds = Holds()
    try:
        holds.take(folder)  # whoever edits now comes to an end first
        return undoing.take_back(folder)
    finally:
        holds.release()


def _busy(folder: Path, patience: float) -> PatchqError:
    return PatchqError(
        f"another patchq edits the queue in {folder}",
        why=f"it did not end within {patience:g} seconds",
        mend="wait for it, then run it again",
    )
