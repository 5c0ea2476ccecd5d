"""New files and second names, made in ``.patchq/<distribution>/stage/``.

A file of the environment is never written: a new one is made here with the
bytes, mode, owner, group, extended attributes and mtime that it shall have, and
renamed into place by `patchq.agent.recover.forward`. A second name keeps the inode
that is about to be replaced; where no link can be made, it is a verified copy.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import struct
from typing import Any, Iterable, List, Mapping, Optional, Tuple

from patchq.agent import facts

_NO_LINK = (errno.EXDEV, errno.EPERM, errno.EMLINK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)
_NO_ATTRIBUTES = (errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENODATA, errno.ENOSYS)
_ACCESS, _DEFAULT = "system.posix_acl_access", "system.posix_acl_default"


class Unsynced:
    """New files that are written and wait for their fsync: many cost one commit of a file system.

    Each is fsynced by the very description that wrote it, so that no error of the disk is
    lost, and all are when the context ends well.
    """

    _MOST = 32

    def __init__(self) -> None:
        self._held: List[Tuple[str, int]] = []

    def add(self, path: str, handle: int) -> None:
        """Take a written file, and let the disk begin with it."""
        held = os.dup(handle)
        self._held.append((path, held))
        with contextlib.suppress(OSError):  # a hint, not every file system takes it
            os.posix_fadvise(held, 0, 0, os.POSIX_FADV_DONTNEED)
        if len(self._held) >= self._MOST:
            self._sync()

    def __enter__(self) -> Unsynced:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if error is None:
            self._sync()
        for _, handle in self._held:
            with contextlib.suppress(OSError):
                os.close(handle)
        self._held = []

    def _sync(self) -> None:
        while self._held:
            path, handle = self._held.pop(0)
            with facts.opened(path, handle):
                os.fsync(handle)


def write(
    path: str,
    data: bytes,
    after: Mapping[str, Any],
    *,
    mtime: Optional[int] = None,
    like: Optional[str] = None,
    folder: Optional[str] = None,
    unsynced: Optional[Unsynced] = None,
) -> None:
    """Make a new file with the owner, group and mode of `after`, and fsync it.

    `mtime`: nanoseconds. `like`: file whose extended attributes it gets.
    `folder`: folder whose default ACL it gets, for a file that is new there.
    `unsynced`: who does the fsync, with that of other files.
    """
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with facts.opened(path, handle):
        at = 0
        while at < len(data):
            at += os.write(handle, data[at:] if at else data)
        made = os.fstat(handle)
        if (made.st_uid, made.st_gid) != (after["uid"], after["gid"]):
            os.fchown(handle, after["uid"], after["gid"])
        os.fchmod(handle, after["mode"])
        if like is not None:
            _copy_attributes(like, handle)
        if folder is not None:
            _inherit(folder, handle, after["mode"])
        if mtime is not None:
            os.utime(handle, ns=(mtime, mtime))
        if unsynced is not None:
            unsynced.add(path, handle)
        else:
            os.fsync(handle)


def make_folder(path: str, after: Mapping[str, Any], parent: str) -> None:
    """Make a folder with the owner, group, mode and default ACL that its parent gives.

    One that is there already gets them too: it may be half made.
    """
    with contextlib.suppress(FileExistsError):
        os.mkdir(path, 0o700)
    made = os.lstat(path)
    if not stat.S_ISDIR(made.st_mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
    if stat.S_IMODE(made.st_mode) == after["mode"] and made.st_uid == after["uid"]:
        return
    if (made.st_uid, made.st_gid) != (after["uid"], after["gid"]):
        os.chown(path, after["uid"], after["gid"])
    os.chmod(path, after["mode"])
    inherited = _attribute(parent, _DEFAULT)
    if inherited is not None:
        os.setxattr(path, _DEFAULT, inherited)
        os.setxattr(path, _ACCESS, inherited)
    sync(path)


def second_name(source: str, name: str) -> str:
    """Give the inode at `source` a second name; return "inode", or "copy" where it is a copy.

    A link to a lower layer's file (overlayfs) may copy it up: then it has another inode.
    """
    before = os.lstat(source)
    try:
        os.link(source, name, follow_symlinks=False)
        return "inode" if os.path.samestat(before, os.lstat(source)) else "copy"
    except OSError as error:
        if error.errno not in _NO_LINK:
            raise
    # Whole or absent: an undo takes what has this name for what was there.
    copy(source, name + ".part")
    os.rename(name + ".part", name)
    return "copy"


def copy(source: str, name: str, mtime: Optional[int] = None) -> None:
    """Copy a file or link: bytes, mode, owner, group, extended attributes, mtime; verified."""
    found, data = facts.look(source)
    if found.target is not None:
        os.symlink(found.target, name)
        os.chown(name, found.uid, found.gid, follow_symlinks=False)
        wanted = os.lstat(source).st_mtime_ns if mtime is None else mtime
        os.utime(name, ns=(wanted, wanted), follow_symlinks=False)
        return
    after = {"uid": found.uid, "gid": found.gid, "mode": found.mode}
    write(name, data, after, mtime=found.mtime_ns if mtime is None else mtime, like=source)
    if facts.read(name) != data:
        raise OSError(errno.EIO, "the copy differs from the file", name)


def sync(path: str) -> None:
    """Wait until a file, or a folder's names, are on the disk."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    with facts.opened(path, handle):
        try:
            os.fsync(handle)
        except OSError as error:
            if error.errno != errno.EINVAL:  # a file system that cannot fsync folders
                raise


def sync_parents(paths: Iterable[str]) -> None:
    """Make the names at `paths` durable: each folder once, where it is still there.

    A folder may be a link that stays inside; `patchq.agent.verify.reachable` has looked.
    """
    for folder in sorted({os.path.realpath(os.path.dirname(path)) for path in paths}):
        if facts.is_folder(folder):
            sync(folder)


def created(folder: str, executable: bool) -> Tuple[int, int, int]:
    """Return mode, owner and group that a folder gives to a new file."""
    like = os.stat(folder)
    mode = like.st_mode & 0o666
    return (mode | (mode & 0o444) >> 2 if executable else mode), like.st_uid, like.st_gid


def with_execution(mode: int, executable: bool) -> int:
    """Return a mode with the executable bits that git would set: where one may read."""
    plain = mode & ~0o111
    if bool(mode & 0o100) == executable:
        return mode
    return plain | (plain & 0o444) >> 2 if executable else plain


def _copy_attributes(like: str, handle: int) -> None:
    if facts.is_link(like):
        return
    try:
        names = os.listxattr(like)
    except OSError as error:
        if error.errno not in _NO_ATTRIBUTES:
            raise
        return
    for name in names:
        value = _attribute(like, name)
        if value is None:
            continue
        try:
            os.setxattr(handle, name, value)
        except OSError as error:
            # Labels and the system's own attributes are the policy's to give.
            if name.startswith(("user.", _ACCESS)):
                raise
            if error.errno not in (errno.EPERM, errno.EACCES, *_NO_ATTRIBUTES):
                raise


def _inherit(folder: str, handle: int, mode: int) -> None:
    """Give a new file the default ACL of its folder, as open(2) would (acl(5))."""
    value = _attribute(folder, _DEFAULT)
    if value is None:
        return
    entries = list(struct.iter_unpack("<HHI", value[4:]))
    tags = {entry[0] for entry in entries}
    group = 0x10 if 0x10 in tags else 0x04
    # open(2) asks for 0666, or 0777 where the file is executable; the mask is what limits.
    wanted = 0o7 if mode & 0o100 else 0o6
    packed = value[:4]
    for tag, permissions, number in entries:
        if tag in (0x01, group, 0x20):
            permissions &= wanted
        packed += struct.pack("<HHI", tag, permissions, number)
    os.setxattr(handle, _ACCESS, packed)


def _attribute(path: str, name: str) -> Optional[bytes]:
    try:
        return os.getxattr(path, name)
    except OSError as error:
        if error.errno in (*_NO_ATTRIBUTES, errno.EPERM, errno.EACCES, errno.ENOENT):
            return None
        raise
