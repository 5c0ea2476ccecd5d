"""Real trees that stand in the way: full, read-only, immutable, of other owners, mounted.

A `Ground` is a folder that everybody reaches; what is mounted or protected in it goes
with it. The agent is a real process, as any
user and under any umask.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.agent import agent_lab
from tests.agent.agent_lab import AgentError
from tests.torture import error_lab

NOBODY = 65534
IMMUTABLE, APPEND = 0x10, 0x20
_GETFLAGS, _SETFLAGS = 0x80086601, 0x40086602


class Ground:
    """A folder for trees, and what is mounted in it."""

    def __init__(self) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="patchq-trees-")).resolve()
        self.root.chmod(0o755)
        self.site = self.root / "site"
        self._protected: list[Path] = []
        self._agents: list[Agent] = []

    def mount(self, *arguments: object) -> Path:
        """Run mount(8); the last argument is the mount point, which is made."""
        point = Path(str(arguments[-1]))
        if not point.exists():
            point.mkdir(parents=True)
        run("mount", *arguments)
        return point

    def disk(
        self, name: str = "site", *, size: str = "16M", make: str = "", use: str = ""
    ) -> Path:
        """Mount a new ext4 image at `name`; `make`: options of mkfs, `use`: of mount."""
        image = self.root / f"{name}.img"
        with image.open("wb") as file:
            file.truncate(int(size[:-1]) << 20)
        run("mkfs.ext4", "-q", "-F", *make.split(), image)
        return self.mount("-o", f"loop,{use}" if use else "loop", image, self.root / name)

    def tmpfs(self, name: str = "site", options: str = "size=8m") -> Path:
        """Mount a tmpfs at `name`."""
        return self.mount("-t", "tmpfs", "-o", f"{options},mode=755", "none", self.root / name)

    def overlay(self, lower: Path, upper: Path) -> Path:
        """Mount an overlay at `site`: `lower` is what the image has, `upper` has two folders."""
        for name in ("upper", "work"):
            (upper / name).mkdir()
        options = f"lowerdir={lower},upperdir={upper}/upper,workdir={upper}/work"
        return self.mount("-t", "overlay", "-o", options, "none", self.site)

    def protect(self, path: Path, flag: int) -> None:
        """Make a path immutable or append-only, as chattr(1) does."""
        change_flags(path, flag, True)
        self._protected.append(path)

    def release(self) -> None:
        """Take all protection away again."""
        while self._protected:
            change_flags(self._protected.pop(), IMMUTABLE | APPEND, False)

    def close(self) -> None:
        """Remove everything."""
        for agent in self._agents:
            agent.close()
        self.release()
        mounts = Path("/proc/self/mountinfo").read_text().splitlines()
        for line in reversed(mounts):
            point = line.split(" ")[4]
            if point.startswith(f"{self.root}/"):
                run("umount", "-l", point)
        shutil.rmtree(self.root)

    def agent(self, uid: int = 0, umask: str = "022", groups: str = "") -> Agent:
        """Return an agent that runs as a user, under a umask."""
        self._agents.append(Agent(self.root / f"python{uid}-{umask}", uid, umask, groups))
        return self._agents[-1]

    def controller(self, uid: int = 0, **more: Any) -> agent_lab.Controller:
        """Return a controller of `site` whose agent is such a process."""
        return agent_lab.Controller(self.site, self.agent(uid, **more))


class Agent:
    """Asks one agent, a process of its own that is started by the first request."""

    def __init__(self, script: Path, uid: int, umask: str, groups: str) -> None:
        python, become = sys.executable, ""
        if uid:
            python = reachable(uid)
            option = f"--groups={groups}" if groups else "--clear-groups"
            become = f"setpriv --reuid={uid} --regid={uid} {option} "
        script.write_text(f'#!/bin/sh\numask {umask}\nexec {become}{shlex.quote(python)} "$@"\n')
        script.chmod(0o755)
        self.python, self._process = str(script), contextlib.ExitStack()
        self._asks: Any = None

    def __call__(
        self, message: Mapping[str, Any], blobs: Mapping[str, bytes] | None = None
    ) -> Any:
        if self._asks is None:
            self._asks = self._process.enter_context(agent_lab.Process(self.python)).ask
        return self._asks(message, blobs)

    def close(self) -> None:
        """End the process."""
        self._process.close()


def reachable(uid: int) -> str:
    """Return an interpreter that another user can start."""
    for python in (os.path.realpath(sys.executable), "/usr/bin/python3", "/usr/local/bin/python3"):
        words = ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", python]
        if subprocess.run([*words, "-ISc", ""], capture_output=True).returncode == 0:
            return python
    raise AssertionError("no interpreter that another user can start")


def run(*words: object) -> None:
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    assert done.returncode == 0, f"{words}: {done.stderr}"


def change_flags(path: Path, flag: int, on: bool) -> None:
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        now = struct.unpack("l", fcntl.ioctl(handle, _GETFLAGS, bytes(8)))[0]
        fcntl.ioctl(handle, _SETFLAGS, struct.pack("l", now | flag if on else now & ~flag))
    finally:
        os.close(handle)


def own(site: Path, uid: int) -> None:
    """Give a tree to a user."""
    for path in [site, *site.rglob("*")]:
        os.chown(path, uid, uid, follow_symlinks=False)


def fill(folder: Path, leave: int) -> None:
    """Write into a folder until `leave` bytes are free."""
    with (folder / "filler").open("ab") as file:
        for size in (1 << 20, 1 << 16, 1 << 12):
            while free(folder) - leave >= size:
                try:
                    file.write(bytes(size))
                    file.flush()
                    os.fsync(file.fileno())
                except OSError:
                    break


def free(folder: Path) -> int:
    found = os.statvfs(folder)
    return found.f_bfree * found.f_frsize


def fill_names(folder: Path, leave: int) -> None:
    """Make files in a folder until `leave` inodes are free."""
    (folder / "names").mkdir(exist_ok=True)
    number = 0
    while os.statvfs(folder).f_ffree > leave:
        (folder / "names" / str(number)).touch()
        number += 1


def acl(*entries: tuple[int, int, int]) -> bytes:
    """Return a POSIX ACL as its extended attribute has it: (tag, permissions, id)."""
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


@contextlib.contextmanager
def refused(site: Path, *words: str) -> Iterator[list[AgentError]]:
    """Check that the body is refused with one of `words`, and that nothing was changed."""
    before, kept = error_lab.whole(site), error_lab.state(site)
    told: list[AgentError] = []
    try:
        yield told
    except AgentError as error:
        told.append(error)
    assert told, "it was not refused"
    (error,) = told
    said = f"{error.word}: {error} / {error.why} / {error.mend}"
    assert error.word in words, said
    assert all((error.why, error.mend, "Traceback" not in said)), said
    found = error_lab.whole(site)
    assert found == before, [
        key for key in {**found, **before} if found.get(key) != before.get(key)
    ]
    now = error_lab.state(site)
    for one in (now, kept):  # a lock is nobody's burden where the folder was there before
        one.pop("demo/lock", None)
    assert now == kept, set(now) ^ set(kept)
