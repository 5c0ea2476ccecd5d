"""The agent as a real process in which one system call fails: strace makes it fail.

The agent is started by patchq's own local transport; "its interpreter" is a script that
puts strace before it, in a pid namespace of its own (so that /proc is the same in each
run, and the calls have the same numbers). A first run lists the calls on the tree; each
further one fails one of them, on a fresh copy of the tree.
"""

from __future__ import annotations

import dataclasses
import os
import re
import shutil
import sys
from collections.abc import Callable, Generator, Mapping
from pathlib import Path
from typing import Any

from patchq.transport import local
from patchq.transport.channel import AgentError, Reply, Request
from tests.agent import agent_lab, crash_lab

# What each call can fail with (its page of the manual, and what NFS gives at close); "any"
# of them can meet a bad disk, no memory or a signal.
ANY = ("EIO", "ENOMEM", "EINTR")
LOOKING = (*ANY, "EACCES")
MAKING = (*ANY, "EACCES", "EPERM", "EROFS", "ENOSPC", "EDQUOT")
FAULTS: dict[str, tuple[str, ...]] = {
    "openat": (*MAKING, "EMFILE", "ENFILE"),
    "mkdir": MAKING,
    "rmdir": MAKING,
    "unlink": MAKING,
    "rename": (*MAKING, "EXDEV"),
    "link": (*MAKING, "EXDEV", "EMLINK"),
    "linkat": (*MAKING, "EXDEV", "EMLINK"),
    "symlink": MAKING,
    "write": ("EIO", "ENOMEM", "EINTR", "ENOSPC", "EDQUOT", "EFBIG"),
    "pwrite64": ("EIO", "ENOMEM", "EINTR", "ENOSPC", "EDQUOT", "EFBIG"),
    "ftruncate": MAKING,
    "truncate": MAKING,
    "fsync": ("EIO", "EINTR", "ENOSPC", "EDQUOT", "EROFS"),
    "close": ("EIO", "EINTR", "ENOSPC", "EDQUOT"),
    "fchmod": MAKING,
    "chmod": MAKING,
    "fchown": MAKING,
    "chown": MAKING,
    "lchown": MAKING,
    "fchownat": MAKING,
    "utimensat": MAKING,
    "fsetxattr": MAKING,
    "setxattr": MAKING,
    "flock": (*ANY, "ENOLCK"),
    "fcntl": ANY,
    "ioctl": ANY,
    "read": ANY,
    "lseek": ANY,
    "getdents64": ANY,
    "statfs": LOOKING,
    "fstat": LOOKING,
    "newfstatat": LOOKING,
    "stat": LOOKING,
    "lstat": LOOKING,
    "readlink": LOOKING,
    "access": LOOKING,
    "faccessat2": LOOKING,
    "faccessat": LOOKING,
    "getxattr": LOOKING,
    "listxattr": LOOKING,
    "fgetxattr": LOOKING,
    "flistxattr": LOOKING,
}
TRACED = ",".join(f"?{name}" for name in FAULTS)
# What tells a user each failure: the words of an error whose cause it may be.
WORDS = {
    "ENOSPC": {"no-space"},
    "EDQUOT": {"no-space"},
    "EFBIG": {"no-space"},
    "EROFS": {"read-only"},
    "EACCES": {"not-permitted"},
    "EPERM": {"not-permitted"},
    "EIO": {"disk"},
    "ENOMEM": {"no-memory"},
    "EMFILE": {"too-many-files"},
    "ENFILE": {"too-many-files"},
    "EXDEV": {"another-disk"},
}

FILES = {
    "demo/__init__.py": b"from demo import a\n",
    "demo/a.py": b"x = 1\n",
    "demo/b.py": b"y = 1\n",
    "demo/tool.py": b"#!/usr/bin/env python3\n",
    "demo/data.json": b"{}\n",
}
PUSH = {
    "demo/a.py": b"x = 2\n",
    "demo/tool.py": None,
    "demo/data.json": (b"{1}\n", True),
    "demo/n/m.py": b"m = 1\n",
}
NEXT = {"demo/a.py": b"x = 3\n", "demo/b.py": b"y = 3\n"}


@dataclasses.dataclass(frozen=True)
class Call:
    """One system call of a traced run: which one of its name it was, and on what."""

    name: str
    number: int
    path: str


@dataclasses.dataclass(frozen=True)
class Told:
    """What a run came to: the agent's answers, or the error that it told."""

    ok: Mapping[str, Any] | None
    error: AgentError | None
    hit: str  # the path on which the call failed, "" where it was not reached

    @property
    def word(self) -> str:
        return self.error.word if self.error else "pending" if self.pending else "done"

    @property
    def pending(self) -> bool:
        return bool(self.ok and self.ok.get("pending"))


class Lab:
    """A folder with a tree, and agents on it in which a call fails."""

    def __init__(self, root: Path) -> None:
        self.root, self.site = root, root / "site"
        self.log, self.python = root / "strace.log", root / "python"

    def fresh(self, pattern: Path) -> None:
        """Make the tree anew, a copy of `pattern`."""
        shutil.rmtree(self.site, ignore_errors=True)
        clone(pattern, self.site)

    def run(self, verb: Callable[[Path], Any], call: str = TRACED, fault: str = "") -> Told:
        """Hold a conversation with a traced agent; `fault`: strace's ``error=...``."""
        self.write(call, fault)
        ok, error = None, None
        try:
            ok = local.converse(str(self.python), verb(self.site))
        except AgentError as told:
            error = told
        return Told(ok, error, self._hit() if fault else "")

    def write(self, call: str, fault: str = "") -> Path:
        """Write the script that stands for the interpreter."""
        inject = f"-e inject={call}:{fault}" if fault else ""
        quick = "" if "signal" in fault else "--seccomp-bpf"  # which takes no signals
        self.python.write_text(
            "#!/bin/sh\nexec unshare --pid --fork --mount-proc --kill-child "
            f"strace -f -qq -y -s 0 {quick} -e signal=none -o {self.log} -e trace={call} "
            f'{inject} {sys.executable} "$@"\n'
        )
        self.python.chmod(0o755)
        return self.python

    def calls(self) -> list[Call]:
        """Return the calls of the last run that were on the tree."""
        seen: dict[str, int] = {}
        found = []
        for line in self.log.read_text().splitlines():
            match = _LINE.match(line)
            if match is None:
                continue
            name, rest = match.groups()
            seen[name] = seen.get(name, 0) + 1
            path = self._path(rest)
            if path is not None:
                found.append(Call(name, seen[name], path))
        return found

    def _hit(self) -> str:
        for line in self.log.read_text().splitlines():
            if "(INJECTED)" in line:
                match = _LINE.match(line)
                return (match and self._path(match.group(2))) or "elsewhere"
        return ""

    def _path(self, arguments: str) -> str | None:
        """Return the first path of the tree that a call's arguments name, from `site`."""
        for path in _PATH.findall(arguments):
            if path == str(self.site) or path.startswith(str(self.site) + "/"):
                return os.path.relpath(path, self.site)
        return None


# Bytecode that RECORD does not list.
CACHE = "a.cpython-312.pyc"
_LINE = re.compile(r"^\d+ +(\w+)\((.*)")
_PATH = re.compile(r'["<](/[^">]*)[">]')


def clone(source: Path, target: Path) -> None:
    """Copy a tree with modes, times, hard links and extended attributes."""
    crash_lab.clone(source, target)
    for path in source.rglob("*"):
        for name in listed(path):
            os.setxattr(target / path.relative_to(source), name, os.getxattr(path, name))
    for path in [source, *source.rglob("*")]:
        if path.is_dir():
            info = path.stat()
            os.utime(target / path.relative_to(source), ns=(info.st_atime_ns, info.st_mtime_ns))


def asking(steps: Generator[Any, Any, Any]) -> Generator[Request, Reply, Any]:
    """Turn (message, blobs) pairs into a conversation."""
    answer = None
    while True:
        try:
            message, blobs = steps.send(answer) if answer is not None else next(steps)
        except StopIteration as done:
            return done.value
        reply: Reply = yield Request(message, blobs)
        answer = reply.message["ok"]


def moves(site: Path, files: Mapping[str, Any] | None, name: str) -> Generator[Any, Any, Any]:
    """Push `files`, or pop all where None, as a verb does: survey, recover, commit."""
    controller = agent_lab.Controller(site)
    paths = list(files or ())
    survey = yield controller.message("survey", paths=paths), {}
    if survey["interrupted"]:
        yield controller.message("recover"), {}
        survey = yield controller.message("survey", paths=paths), {}

    def known(message: Mapping[str, Any], blobs: object = None) -> Any:
        return survey, {}

    controller.ask = known
    asked = controller.pop_request() if files is None else controller.push_request(files, name)
    return (yield asked)


def push(site: Path) -> Any:
    return asking(moves(site, PUSH, "p"))


def push_more(site: Path) -> Any:
    return asking(moves(site, NEXT, "q"))


def pop(site: Path) -> Any:
    return asking(moves(site, None, ""))


def recover(site: Path) -> Any:
    def steps() -> Generator[Any, Any, Any]:
        return (yield agent_lab.Controller(site).message("recover"), {})

    return asking(steps())


def whole(site: Path) -> dict[str, Any]:
    """Return all that must be as it was: files, RECORD, bytecode, attributes, inodes."""
    found = agent_lab.snapshot(site)
    for path in site.rglob("*"):
        name = str(path.relative_to(site))
        if not name.startswith(".patchq"):
            found[name + " xattrs"] = listed(path)
            if path.suffix == ".pyc":
                found[name] = (path.read_bytes(), path.stat().st_mtime_ns, path.stat().st_ino)
    return found


def plain(site: Path) -> dict[str, Any]:
    """Return bytes and modes, which are the same wherever a verb was done rightly."""
    found = agent_lab.snapshot(site, inodes=False)
    return {
        name: (mode, uid, gid, content[0] if isinstance(content, tuple) else content)
        for name, (mode, uid, gid, content) in found.items()
    }


def state(site: Path) -> dict[str, Any]:
    """Return what is in the state's folder: bytes (of the lock: none), inodes of the originals."""
    root, found = site / ".patchq", {}
    for path in root.rglob("*"):
        name, info = str(path.relative_to(root)), path.lstat()
        kept = info.st_ino if "originals/" in name else None
        data = path.read_bytes() if path.is_file() and name != "demo/lock" else None
        found[name] = (info.st_mode, info.st_uid, kept, data)
    return found


def make(site: Path) -> Path:
    """Install what the verbs change: with bytecode (RECORD lists some of it) and attributes."""
    agent_lab.make_site(site, {**FILES, "demo/__pycache__/a.cpython-311.pyc": b"\0" * 20})
    (site / "demo/__pycache__/a.cpython-312.pyc").write_bytes(b"\0" * 16)
    os.setxattr(site / "demo/a.py", "user.origin", b"wheel")
    return site


def clone_over(source: Path, target: Path) -> None:
    """Make `target` a copy of `source`, whatever it was."""
    shutil.rmtree(target)
    clone(source, target)


def attributes(site: Path) -> dict[str, Any]:
    """Return times, and extended attributes with ACLs, of the files."""
    return {
        str(path.relative_to(site)): (
            path.lstat().st_mtime_ns,
            {name: os.getxattr(path, name) for name in listed(path)},
        )
        for path in site.rglob("*")
        if path.is_file() and ".patchq" not in path.parts
    }


def listed(path: Path) -> list[str]:
    """Return the names of a path's extended attributes, none where the disk has none."""
    try:
        return sorted(os.listxattr(path, follow_symlinks=False))
    except OSError:
        return []


def left(site: Path) -> set[str]:
    """Return the names in the state's folder."""
    return {str(path.relative_to(site / ".patchq")) for path in site.glob(".patchq/**/*")}
