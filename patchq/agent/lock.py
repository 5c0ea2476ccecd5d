"""One writer at a time: ``.patchq/<distribution>/lock``, and who holds it.

The lock is flock(2) on a file that no installer replaces, opened close-on-exec
so that no child keeps it. Its text is for the loser: JSON with ``who host pid
since``, and what tells whether that process can be seen from here (``boot``,
``namespace``, ``start``). Where the file system has no flock, the lock is a name
made by link(2), ``lock.held``; it is taken over only when its holder is of this boot
and pid namespace, and gone (`patchq.agent.holder`). Who has flock respects such a name,
and who has none respects the text of who has.
"""

from __future__ import annotations

import binascii
import contextlib
import errno
import os
import time
from typing import Any, Mapping

from patchq.agent import facts, holder, protocol, state
from patchq.agent.facts import RefusalError

_UNSUPPORTED = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EINVAL)
_TRIES, _PAUSE = 4, 0.05  # a reader that asks whether a writer lives holds it for an instant


class Lock:
    """The writer's lock of one state folder, held between `__enter__` and `__exit__`."""

    def __init__(self, home: str, who: Mapping[str, Any]) -> None:
        self.home = home
        self._path = os.path.join(home, "lock")
        self._who = dict(who, **holder.me())
        self._handle = -1
        self._held = self._linked = self._fresh = False

    def __enter__(self) -> Lock:
        self._fresh = not facts.exists(self.home)
        try:
            self._take()
        except OSError:
            if self._fresh:
                self._leave()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        # What was done is done: the kernel gives the lock back, whatever fails here.
        with contextlib.suppress(OSError, MemoryError):
            if self._fresh and set(os.listdir(self.home)) <= {"lock", "lock.held"}:
                # Nothing came of the first push: leave nothing behind.
                os.unlink(self._path)
            else:
                os.ftruncate(self._handle, 0)
        if self._linked:
            with contextlib.suppress(OSError):
                os.unlink(self._path + ".held")
        if self._fresh:
            self._leave()
        with contextlib.suppress(OSError):
            self._close()

    def _take(self) -> None:
        for attempt in range(_TRIES):
            make_home(self.home)
            try:
                self._handle = own_file(self.home, self._path)
            except FileNotFoundError:  # its last holder left nothing behind, not even the folder
                continue
            try:
                with facts.named(self._path):
                    if self._taken():
                        break
            except OSError:
                if self._held:  # a full disk: nobody is to wait for a lock that nobody holds
                    self.__exit__()
                else:
                    self._close()
                raise
            self._close()
            if attempt + 1 < _TRIES:
                time.sleep(_PAUSE)
        else:
            raise locked(self.home)

    def _taken(self) -> bool:
        """Take the lock; False where another has it, or the file was replaced meanwhile."""
        import fcntl

        try:
            with facts.named(self._path):
                fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in (errno.EAGAIN, errno.EACCES):
                return False
            if error.errno not in _UNSUPPORTED:
                raise
            return self._by_link(error.errno)
        if not self.stands():
            return False
        # First the text, then the look: who has no flock does it the other way round.
        self._say()
        if not facts.exists(self._path + ".held") or self._by_link():
            return True
        self._held = False
        os.ftruncate(self._handle, 0)
        return False

    def check(self) -> None:
        """Refuse where others do not see this lock any more: its file was removed.

        Raises:
            RefusalError: nobody may go on.
        """
        if not self.stands() or (self._linked and holder.told(self._path + ".held") != self._who):
            raise RefusalError(
                "locked",
                "the lock was taken from this patchq while it was at work",
                "%s was removed or replaced" % self._path,
                "leave that folder to patchq, and run the command again",
            )

    def stands(self) -> bool:
        """Return whether the file that is locked is still the one that others would lock."""
        found = facts.status(self._path)
        return found is not None and os.path.samestat(os.fstat(self._handle), found)

    def _say(self) -> None:
        self._held = True
        os.ftruncate(self._handle, 0)
        os.pwrite(self._handle, state.dump(self._who), 0)

    def _by_link(self, without: int = 0) -> bool:
        """Take ``lock.held``; `without`: the error of flock, where there is none."""
        with contextlib.suppress(FileNotFoundError):  # the folder went, as above
            self._linked = self._link(self._path + ".held")
        if not self._linked or not without:
            return self._linked
        other = holder.told(self._path)
        if self.stands() and (not other or other == self._who or holder.gone(other)):
            self._say()
            return True
        self._linked = False
        os.unlink(self._path + ".held")
        return False

    def _link(self, name: str) -> bool:
        """Make a name that only one can make, or replace it where its maker is gone."""
        mine = "%s.%s.new" % (self._path, binascii.hexlify(os.urandom(8)).decode())
        handle = own_file(self.home, mine, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        try:
            try:
                os.write(handle, state.dump(self._who))
            finally:
                os.close(handle)
            try:
                os.link(mine, name)
                return True
            except FileExistsError:
                found = facts.optional(name)
            if found is None or not holder.gone(state.said(found)):
                return False
            # Of two who see it dead one gets the right to replace just this one.
            right = "%s.%s" % (name, protocol.sha256(found)[:16])
            if not self._link(right):
                return False
            try:
                if facts.optional(name) != found:
                    return False
                os.rename(mine, name)
                return True
            finally:
                os.unlink(right)
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(mine)

    def _leave(self) -> None:
        """Remove the folders that were made for nothing; one with a file in it stays."""
        for folder in (self.home, os.path.dirname(self.home)):
            with contextlib.suppress(OSError, MemoryError):
                os.rmdir(folder)

    def _close(self) -> None:
        handle, self._handle = self._handle, -1
        os.close(handle)


def locked(home: str) -> RefusalError:
    """Return the error that tells the loser who holds the lock and since when."""
    linked = holder.held(home)
    found = linked or holder.told(os.path.join(home, "lock"))
    if not found:
        why = "somebody has just taken %s/lock, and does not say yet who it is" % home
    else:
        who, host, pid, since = (
            found.get(key, "unknown") for key in ("who", "host", "pid", "since")
        )
        why = "%s on %s (process %s) holds %s/lock since %s" % (who, host, pid, home, since)
    mend = "wait for it, then run the command again"
    if linked and any(linked.get(key) != holder.me()[key] for key in ("boot", "namespace")):
        why += "; whether that process still runs cannot be seen from here"
        mend = "wait for it; if it is gone, as after a reboot: rm %s/lock.held %s/lock" % (
            home,
            home,
        )
    return RefusalError("locked", "another patchq is writing to this environment", why, mend)


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
        os.mkdir(folder, like.st_mode & 0o775)
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW)
    with facts.opened(folder, handle):
        if not os.listdir(handle):
            _own(handle, like, like.st_mode & 0o7775)


def own_file(home: str, path: str, flags: int = os.O_RDWR | os.O_CREAT) -> int:
    """Open a file of the state for writing, with owner, group and mode of `home`."""
    handle = os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        with facts.named(path):
            like = os.stat(home)
            _own(handle, like, like.st_mode & 0o664)
    except OSError:
        os.close(handle)
        raise
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
