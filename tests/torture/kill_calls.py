"""What an agent is given and what it does: conversations on tape, and traces of system calls."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any, NamedTuple

from patchq.agent import protocol

CHANGING = frozenset(
    "open openat openat2 creat write writev pwrite64 pwritev pwritev2 sendfile copy_file_range"
    " splice rename renameat renameat2 link linkat unlink unlinkat mkdir mkdirat rmdir symlink"
    " symlinkat mknod mknodat chmod fchmod fchmodat fchmodat2 chown fchown lchown fchownat utime"
    " utimes utimensat futimesat truncate ftruncate fallocate fsync fdatasync sync_file_range"
    " setxattr lsetxattr fsetxattr removexattr lremovexattr fremovexattr msync".split()
)
# What an agent may do to a path of the environment and changes nothing there. `ioctl` reads
# flags (FS_IOC_GETFLAGS) and asks what is a terminal; `fadvise64` is a hint to the
# disk.
HARMLESS = frozenset(
    "access faccessat faccessat2 stat lstat newfstatat statx fstat statfs readlink readlinkat"
    " getdents64 read pread64 lseek close fcntl flock getxattr lgetxattr fgetxattr listxattr"
    " llistxattr flistxattr ioctl execve getcwd mmap fadvise64".split()
)
_LINE = re.compile(r"(\w+)\((.*)\)\s+= (-?\d+|\?)")
_WRITES = re.compile(r"O_WRONLY|O_RDWR|O_CREAT|O_TRUNC")
_BODY = re.compile(rb"^data = b\.read\((\d+)\)$", re.MULTILINE)


class Call(NamedTuple):
    """One system call of a trace: the `number`-th of this name, and whether it changes files."""

    name: str
    number: int
    text: str
    changing: bool


class Kill(NamedTuple):
    """Where an agent is killed: on entry to a call, which then is not done."""

    call: Call
    when: str  # "before" the changing call `of`, or "after" it
    of: Call


class Tape(NamedTuple):
    """What patchq sent to an agent: the payload, and the frames that followed."""

    payload: bytes
    frames: tuple[tuple[dict[str, Any], dict[str, bytes]], ...]

    @classmethod
    def read(cls, data: bytes) -> Tape:
        """Take the bytes of a conversation apart."""
        line, _, rest = data.partition(b"\n")
        loader = int(line.split()[-1])
        found = _BODY.search(rest[:loader])
        assert found
        at = len(line) + 1 + loader + int(found[1])
        payload, frames = data[:at], []
        while at < len(data):
            start = at + protocol.HEADER.size
            head, tail = protocol.lengths(data[at:start])
            at = start + head + tail
            frames.append(protocol.unpack(data[start : start + head], data[start + head : at]))
        return cls(payload, tuple(frames))

    def play(self, identity: str | None = None) -> bytes:
        """Return the bytes again; `identity`: the id of its commit, in place of the taped one."""
        parts = [self.payload]
        for message, blobs in self.frames:
            new = {"id": identity} if identity is not None and "id" in message else {}
            parts.append(protocol.pack({**message, **new}, blobs))
        return b"".join(parts)

    def alone(self) -> Tape:
        """Return the tape of its commit alone."""
        frames = [frame for frame in self.frames if frame[0]["op"] == "commit"]
        return self._replace(frames=tuple(frames))


def answers(data: bytes, out: bytes) -> list[Any]:
    """Return the agent's answers; one that is an error is returned as it is."""
    nonce = data.split(b"\n", 1)[0].split()[-2]
    found, rest = [], out.partition(protocol.marker(nonce)[:-1])[2][1:]
    while rest:
        head, tail = protocol.lengths(rest[:8])
        found.append(protocol.unpack(rest[8 : 8 + head], rest[8 + head : 8 + head + tail])[0])
        rest = rest[8 + head + tail :]
    return found


def calls(trace: list[str], site: Path) -> list[Call]:
    """Return the calls of a trace; `changing` are those that change something of the site."""
    numbers: dict[str, int] = {}
    found = []
    for line in trace:
        match = _LINE.match(line)
        if match is None:
            continue
        name, arguments, result = match.groups()
        numbers[name] = numbers.get(name, 0) + 1
        here = f"{site}/" in arguments or f"{site}>" in arguments or f'{site}"' in arguments
        assert not here or name in CHANGING | HARMLESS, f"what does this do? {line}"
        changing = here and name in CHANGING and not result.startswith("-")
        if name.startswith("open") and not _WRITES.search(arguments):
            changing = False
        found.append(Call(name, numbers[name], line, changing))
    return found


def kills(found: list[Call]) -> list[Kill]:
    """Return a kill before each changing call, and one before whatever follows it."""
    places = []
    for call, following in itertools.pairwise(found):
        if call.changing:
            places += [Kill(call, "before", call), Kill(following, "after", call)]
    return places


def step(call: Call) -> str:
    """Return the step of a transaction that a call is of, in words for a table."""
    text = call.text
    if "journal" in text:
        return "journal and GO"
    if "/originals/" in text or (call.name in ("unlink", "rmdir") and "/stage" in text):
        return "second names and clearing up"
    if call.name == "rename" and "/stage/" in text:
        return "renames"
    if "/stage" in text:
        return "stage"
    if "/.patchq" in text:
        return "lock, ledger, folders of the state"
    return "the package's own folders and files"
