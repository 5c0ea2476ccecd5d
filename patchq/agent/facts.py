"""What is at a path of the environment, and why it could not be replaced.

Nothing here writes. A link's digest, mode and size are its target's; its owner
is its own. A folder on the way may be a link only while it stays inside.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
import sys
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple

from patchq.agent import protocol

# linux/fs.h: _IOR('f', 1, long) on all but mips, powerpc and sparc, where reads are 2 << 29.
_GETFLAGS = (0x80086601, 0x40086601)
_IMMUTABLE, _APPEND = 0x10, 0x20
_NOTHING = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG)
# No file that a patch or patchq touches is larger; it is held in memory.
LARGEST, _CHUNK = 1 << 28, 1 << 20
_QUIET = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY


class RefusalError(Exception):
    """The agent will not do it: a word, what, why, and what to type next."""

    def __init__(self, word: str, what: str, why: str, mend: str) -> None:
        super().__init__(what)
        self.word, self.what, self.why, self.mend = word, what, why, mend

    def to_json(self) -> Dict[str, str]:
        """Return the error as an answer carries it."""
        return {"word": self.word, "what": self.what, "why": self.why, "mend": self.mend}


class Facts(NamedTuple):
    """One path: kind is file, link, absent, folder or other."""

    kind: str
    sha256: Optional[str] = None
    mode: int = 0
    uid: int = 0
    gid: int = 0
    size: int = 0
    mtime_ns: int = 0
    target: Optional[str] = None
    inode: Tuple[int, int] = (0, 0)
    links: int = 1

    @property
    def executable(self) -> bool:
        """True where the owner may execute the file."""
        return self.sha256 is not None and bool(self.mode & 0o100)

    def wire(self) -> List[Any]:
        """Return ``[kind, executable, sha256]`` as `FileState.to_json` has it."""
        return ["absent" if self.sha256 is None else "file", self.executable, self.sha256]


def look(full: str) -> Tuple[Facts, bytes]:
    """Return what is at an absolute path, and the bytes of the file (link: its target's)."""
    try:
        own = os.lstat(full)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR):
            return Facts("absent"), b""
        raise
    target = os.readlink(full) if stat.S_ISLNK(own.st_mode) else None
    try:
        info = own if target is None else os.stat(full)
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
            raise
        info = own
    if not stat.S_ISREG(info.st_mode):
        kind = "link" if target is not None else "folder" if stat.S_ISDIR(own.st_mode) else "other"
        return Facts(
            kind,
            None,
            stat.S_IMODE(own.st_mode),
            own.st_uid,
            own.st_gid,
            0,
            own.st_mtime_ns,
            target,
        ), b""
    data = read(full, follow=target is not None)
    return Facts(
        "file" if target is None else "link",
        protocol.sha256(data),
        stat.S_IMODE(info.st_mode),
        own.st_uid,
        own.st_gid,
        len(data),
        info.st_mtime_ns,
        target,
        (own.st_dev, own.st_ino),
        info.st_nlink,
    ), data


def read(full: str, follow: bool = False) -> bytes:
    """Return the bytes of a regular file, never through a link unless told to.

    Anything else is refused: a pipe or a device would be read for ever, or in vain, and
    some files of /proc have no end.
    """
    handle = os.open(full, _QUIET | (0 if follow else os.O_NOFOLLOW))
    with named(full), open(handle, "rb", buffering=0) as file:
        info = os.fstat(handle)
        if not stat.S_ISREG(info.st_mode):
            raise OSError(errno.EINVAL, "it is no regular file", full)
        parts, size = [], info.st_size
        part = file.read(size + 1) if size <= LARGEST else b""
        while part:
            parts.append(part)
            size = sum(map(len, parts))
            part = file.read(_CHUNK) if size <= LARGEST else b""
        if size > LARGEST:
            raise OSError(errno.EINVAL, "it has more than %d bytes" % LARGEST, full)
        return b"".join(parts)


@contextlib.contextmanager
def named(full: str) -> Iterator[None]:
    """Give a failed system call on a descriptor the name of its file."""
    try:
        yield
    except OSError as error:
        if not isinstance(error.filename, str):
            error.filename = full
        raise


@contextlib.contextmanager
def opened(full: str, handle: int) -> Iterator[None]:
    """Close a descriptor in the end; a failed system call on it names the file."""
    with named(full):
        try:
            yield
        finally:
            os.close(handle)


def status(full: str, follow: bool = False) -> Optional[os.stat_result]:
    """Return stat(2) of a path, None where nothing is there.

    `os.path.exists` and its like say "no" of a disk that fails, too, and what is
    taken for gone may be the only copy.
    """
    try:
        return os.stat(full) if follow else os.lstat(full)
    except ValueError:  # a NUL in it
        return None
    except OSError as error:
        if error.errno not in _NOTHING:
            raise
        return None


def exists(full: str) -> bool:
    """Return whether a name is there, be it a dangling link."""
    return status(full) is not None


def is_folder(full: str) -> bool:
    """Return whether a path is a folder, or a link to one."""
    found = status(full, follow=True)
    return found is not None and stat.S_ISDIR(found.st_mode)


def is_link(full: str) -> bool:
    """Return whether a path is a symbolic link."""
    found = status(full)
    return found is not None and stat.S_ISLNK(found.st_mode)


def optional(full: str, follow: bool = False) -> Optional[bytes]:
    """Return the bytes of a regular file, None where there is none."""
    try:
        return read(full, follow)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno in (errno.ENOTDIR, errno.ELOOP):
            return None
        raise


def flags(full: str) -> Optional[str]:
    """Return "immutable" or "append-only" where chattr(1) made a path so."""
    try:
        handle = os.open(full, _QUIET | os.O_NOFOLLOW)
    except OSError:
        return None
    with opened(full, handle):
        for request in _GETFLAGS:
            try:
                found = fcntl.ioctl(handle, request, b"\0" * 8)
            except OSError:
                continue
            value = int.from_bytes(found[:4], sys.byteorder)  # an int, whatever the macro says
            return (
                "immutable" if value & _IMMUTABLE else "append-only" if value & _APPEND else None
            )
    return None


def mounts() -> Dict[str, Tuple[str, str]]:
    """Return mount point → (file system type, source), of this mount namespace."""
    data = optional("/proc/self/mountinfo") or b""
    found = {}
    for line in os.fsdecode(data).split("\n"):
        fields, _, rest = line.partition(" - ")
        words, more = fields.split(" "), rest.split(" ")
        if len(words) > 4 and len(more) > 1:
            found[_unescape(words[4])] = (
                more[0],
                _unescape(words[3]) + " of " + _unescape(more[1]),
            )
    return found


def _unescape(text: str) -> str:
    for code, char in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, char)
    return text


def beneath(site: str, real: str, path: str, mounted: Dict[str, Tuple[str, str]]) -> Optional[str]:
    """Return why `path` is not reached inside `site`, or None.

    `real` is the real path of `site`. A folder that leads out and a mount point
    on the way (or the file itself) are named.
    """
    parent = os.path.dirname(path)
    inside = os.path.realpath(os.path.join(site, parent)) if parent else real
    if inside != real and not inside.startswith(real + "/"):
        return "its folder leads out of the environment, to %s" % inside
    at = real
    for part in path.split("/"):
        at += "/" + part
        if at in mounted:
            return "%s is a mount point of its own (%s)" % (at, mounted[at][1])
    return None


def unwritable(folder: str) -> Optional[str]:
    """Return why no name can be put into or taken from an existing folder, or None."""
    found = flags(folder)
    if found is not None:
        return "its folder %s is %s (chattr)" % (folder, found)
    if os.access(folder, os.W_OK | os.X_OK, effective_ids=os.access in os.supports_effective_ids):
        return None
    if os.statvfs(folder).f_flag & os.ST_RDONLY:
        return "its folder %s is on a read-only file system" % folder
    return "its folder %s cannot be written by uid %d" % (folder, os.geteuid())


def foreign(uid: int, gid: int) -> Optional[str]:
    """Return why a new file could not get this owner and group, or None."""
    me = os.geteuid()
    if me == 0:
        return None
    if uid != me:
        return "it belongs to uid %d, and uid %d cannot give a new file that owner" % (uid, me)
    if gid != os.getegid() and gid not in os.getgroups():
        return "its group %d is none of uid %d's, so that a new file could not keep it" % (gid, me)
    return None
