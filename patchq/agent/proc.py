"""What /proc says of one process; nothing where it has ended or is another user's."""

from __future__ import annotations

import os
import re
from typing import Dict, Iterator, NamedTuple, Optional, Sequence, Tuple

# An argument list may have 2 MB; what names the program is in front.
_MOST = 1 << 16
_CHUNK = 1 << 16
_ENDED = (b"Z", b"X", b"x")
# Of a process's flags, include/linux/sched.h: PF_FORKNOEXEC.
_FORKNOEXEC = 0x40


class Stat(NamedTuple):
    """/proc/PID/stat: `start` in ticks since boot, `thread` the name of the main thread.

    `image` is where program and stack begin: a process has its parent's until it runs
    another program, and nobody else has it, since the kernel places each at random. It
    cannot be read of another user's. `forked`: it has run no program since it was forked,
    which the kernel tells of anybody's.
    """

    parent: int
    start: int
    image: Tuple[bytes, bytes]
    thread: str
    forked: bool

    @property
    def readable(self) -> bool:
        """True where `image` says something; else the kernel gives 1 and 0."""
        return int(self.image[1]) != 0


def stat(pid: int) -> Optional[Stat]:
    """Return what a process is, None where it has ended."""
    data = read(pid, "stat")
    first, last = data.find(b"("), data.rfind(b")")
    fields = data[last + 1 :].split()  # proc(5) counts from 1, and the first one here is 3
    if len(fields) < 26 or fields[0] in _ENDED:
        return None
    image = (fields[23], fields[25])
    thread, forked = os.fsdecode(data[first + 1 : last]), bool(int(fields[6]) & _FORKNOEXEC)
    return Stat(int(fields[1]), int(fields[19]), image, thread, forked)


def hides() -> bool:
    """Return whether /proc does not show other users' processes (hidepid), or none at all.

    Process 1 is always there. Where it is this user's own, only the mount tells.
    """
    if not read(1, "stat"):
        return True
    if os.geteuid() == 0 or os.stat("/proc/1").st_uid != os.geteuid():
        return False
    with open("/proc/self/mountinfo", "rb") as file:  # it comes in pages
        lines = [line.split(b" ") for line in file.read().split(b"\n")]
    mine = [line for line in lines if line[4:5] == [b"/proc"]]
    below = {line[1] for line in mine}  # they stand in no order: which one is on top?
    top = b" ".join(word for line in mine if line[0] not in below for word in line)
    found = re.search(rb"\bhidepid=(\w+)", top)
    return found is not None and found[1] not in (b"0", b"off")


def boot() -> str:
    """Return the id of the kernel's boot, "" where it says none."""
    return _read("/proc/sys/kernel/random/boot_id").decode("ascii", "replace").strip()


def read(pid: int, name: str) -> bytes:
    """Return the beginning of a file of /proc/PID."""
    return _read("/proc/%d/%s" % (pid, name))


def _read(path: str) -> bytes:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.read(handle, _MOST)
    except OSError:  # it ended meanwhile
        return b""
    finally:
        os.close(handle)


def link(pid: int, name: str) -> str:
    """Return where a link of /proc/PID leads."""
    try:
        return os.readlink("/proc/%d/%s" % (pid, name))
    except OSError:
        return ""


def environ(pid: int) -> Dict[str, str]:
    """Return the environment that a process was started with, as far as it is there still.

    setproctitle writes titles over it.
    """
    pairs = (os.fsdecode(one).partition("=") for one in read(pid, "environ").split(b"\0"))
    return {name: value for name, _, value in pairs}


def mapped(pid: int, marks: Sequence[bytes]) -> Iterator[bytes]:
    """Yield the lines of /proc/PID/maps that have one of these texts."""
    try:
        handle = os.open("/proc/%d/maps" % pid, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return
    try:
        rest = b""
        while True:
            part = os.read(handle, _CHUNK)
            text = rest + part
            rest = text[text.rfind(b"\n") + 1 :]
            if any(mark in text for mark in marks):
                for line in text[: len(text) - len(rest)].split(b"\n"):
                    if any(mark in line for mark in marks):
                        yield line
            if not part:
                return
    except OSError:  # it ended meanwhile
        return
    finally:
        os.close(handle)
