"""One writer at a time: ``.patchq/<distribution>/lock``, and who holds it.

The lock is flock(2) on a file that no installer replaces, opened close-on-exec
so that no child keeps it. Its text is for the loser: JSON with ``who host pid
since``, and what tells whether that process can be seen from here (``boot``,
``namespace``, ``start``). Where the file system has no flock, the lock is a name
made by link(2); it is taken over only when its holder is of this host, boot and
pid namespace, and gone.
"""

from __future__ import annotations

import contextlib
import errno
import os
import time
from typing import Any, Dict, Mapping, Optional

from patchq.agent import facts, state
from patchq.agent.facts import RefusalError

_UNSUPPORTED = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EINVAL)
_TRIES, _PAUSE = 4, 0.05  # a reader that asks whether a writer lives holds it for an instant


class Lock:
    """The writer's lock of one state folder, held between `__enter__` and `__exit__`."""

    def __init__(self, home: str, who: Mapping[str, Any]) -> None:
        self.home = home
        self._path = os.path.join(home, "lock")
        self._who = dict(who, boot=_boot(), namespace=_namespace(), start=_start(os.getpid()))
        self._handle = -1
        self._linked = False
        self._fresh = False

    def __enter__(self) -> Lock:
        self._fresh = not os.path.lexists(self.home)
        make_home(self.home)
        for attempt in range(_TRIES):
            self._handle = own_file(self.home, self._path)
            try:
                if self._taken():
                    break
            except OSError:
                self._close()
                raise
            self._close()
            if attempt + 1 < _TRIES:
                time.sleep(_PAUSE)
        else:
            raise locked(self.home)
        try:
            os.ftruncate(self._handle, 0)
            os.pwrite(self._handle, state.dump(self._who), 0)
        except OSError:  # a full disk: nobody is to wait for a lock that nobody holds
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        # What was done is done: the kernel gives the lock back, whatever fails here.
        with contextlib.suppress(OSError, MemoryError):
            if self._fresh and sorted(os.listdir(self.home)) == ["lock"]:
                # Nothing came of the first push: leave nothing behind.
                os.unlink(self._path)
                os.rmdir(self.home)
                os.rmdir(os.path.dirname(self.home))
            else:
                os.ftruncate(self._handle, 0)
        if self._linked:
            with contextlib.suppress(OSError):
                os.unlink(self._path + ".held")
        self._close()

    def _taken(self) -> bool:
        """Take the lock; False where another has it, or the file was replaced meanwhile."""
        import fcntl

        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in (errno.EAGAIN, errno.EACCES):
                return False
            if error.errno not in _UNSUPPORTED:
                raise
            return self._by_link()
        try:
            return os.path.samestat(os.fstat(self._handle), os.stat(self._path))
        except FileNotFoundError:
            make_home(self.home)
            return False

    def _by_link(self) -> bool:
        mine, held = "%s.%d" % (self._path, os.getpid()), self._path + ".held"
        with open(mine, "wb") as file:
            file.write(state.dump(self._who))
        try:
            if _dead(_read(held)):
                os.unlink(held)
            os.link(mine, held)
        except FileExistsError:
            return False
        finally:
            os.unlink(mine)
        self._linked = True
        return True

    def _close(self) -> None:
        os.close(self._handle)
        self._handle = -1


def holder(home: str) -> Optional[Dict[str, Any]]:
    """Return what the lock's text says of its holder, None where it says nothing."""
    return _read(os.path.join(home, "lock.held")) or _read(os.path.join(home, "lock"))


def locked(home: str) -> RefusalError:
    """Return the error that tells the loser who holds the lock and since when."""
    found = holder(home) or {}
    return RefusalError(
        "locked",
        "another patchq is writing to this environment",
        "%s on %s (process %s) holds %s/lock since %s"
        % (
            *(found.get(key, "unknown") for key in ("who", "host", "pid")),
            home,
            found.get("since"),
        ),
        "wait for it, then run the command again",
    )


def make_home(home: str) -> None:
    """Make ``.patchq/<distribution>/`` with the owner, group and mode of its site-packages."""
    own = os.path.dirname(home)
    for folder, like in ((own, os.path.dirname(own)), (home, own)):
        make_folder(folder, os.stat(like))


def make_folder(folder: str, like: os.stat_result) -> None:
    """Make a folder of the state with owner, group and mode of `like`.

    One that is there keeps its own, unless it is empty: then its maker may have died.
    """
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder, like.st_mode & 0o777)
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        if not os.listdir(handle):
            _own(handle, like, like.st_mode & 0o7777)
    finally:
        os.close(handle)


def own_file(home: str, path: str, flags: int = os.O_RDWR | os.O_CREAT) -> int:
    """Open a file of the state for writing, with owner, group and mode of `home`."""
    handle = os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    like = os.stat(home)
    _own(handle, like, like.st_mode & 0o666)
    return handle


def _own(handle: int, like: os.stat_result, mode: int) -> None:
    """Give a file of the state its owner, group and mode, as far as this user may."""
    made = os.fstat(handle)
    if (made.st_uid, made.st_gid) != (like.st_uid, like.st_gid):
        try:
            os.fchown(handle, like.st_uid, like.st_gid)
        except PermissionError:
            # Only root gives files away; a group member's state stays the member's own.
            with contextlib.suppress(PermissionError):
                os.fchown(handle, -1, like.st_gid)
    if made.st_mode & 0o7777 != mode:
        with contextlib.suppress(PermissionError):
            os.fchmod(handle, mode)


def _read(path: str) -> Optional[Dict[str, Any]]:
    try:
        return state.said(facts.optional(path) or b"") or None
    except OSError:
        return None


def _dead(found: Optional[Mapping[str, Any]]) -> bool:
    """Return whether a holder is known to be gone: same boot, same pid namespace, no process."""
    if found is None or found.get("boot") != _boot() or found.get("namespace") != _namespace():
        return False
    pid = found.get("pid")
    if not isinstance(pid, int) or not _boot() or not _namespace():
        return False
    return _start(pid) != found.get("start")


def _boot() -> str:
    return (facts.optional("/proc/sys/kernel/random/boot_id") or b"").decode().strip()


def _namespace() -> str:
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""


def _start(pid: int) -> str:
    data = facts.optional("/proc/%d/stat" % pid) or b""
    fields = data.rpartition(b")")[2].split()
    return fields[19].decode() if len(fields) > 19 else ""
