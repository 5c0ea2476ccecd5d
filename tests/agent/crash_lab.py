"""Stop a commit or a recovery at each of its system calls, for real.

The work runs in a forked process whose `os` functions that change anything are
counted. Before call number n that process ends without a word (`os._exit`, as a
kill or a power cut of the process), or the call fails once: with EIO, or because
there is no memory, which no `except OSError` sees.
"""

from __future__ import annotations

import errno
import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path

CALLS = [
    "rename",
    "replace",
    "link",
    "unlink",
    "remove",
    "symlink",
    "mkdir",
    "rmdir",
    "open",
    "write",
    "pwrite",
    "fsync",
    "utime",
    "chmod",
    "fchmod",
    "chown",
    "fchown",
    "truncate",
    "ftruncate",
    "setxattr",
]
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
KILLED, FINISHED, FAILED, PASSED, BUG = 77, 0, 1, 3, 2


def stopped(
    work: Callable[[], object], number: int, *, fail: int = 0, memory: bool = False
) -> int:
    """Run `work` in a process that is killed before its `number`-th changing call.

    `fail`: the call of that number fails with EIO instead; `memory`: with MemoryError,
    which the agent tells as a bug. Returns KILLED, FINISHED
    (there were no such calls), FAILED (`work` raised), or PASSED (it did not, though
    a call failed).
    """
    return _forked(lambda: _arm(number, fail, memory=memory), work, fail, memory)


def stopped_at(work: Callable[[], object], last: Callable[[str, str, str], bool]) -> int:
    """Run `work` in a process that is killed before the first call that `last` says yes to.

    `last` gets the call's name and its first two arguments.
    """
    return _forked(lambda: _arm(0, 0, last), work, 0)


def every(work: Callable[[int], int]) -> int:
    """Call `work` with 1, 2, ... until it says FINISHED; return how many calls there were."""
    for number in itertools.count(1):
        assert number < 2000, "the work never finishes"
        if work(number) == FINISHED:
            return number - 1
    raise AssertionError


def clone(source: Path, target: Path) -> Path:
    """Copy a tree with its modes, times, links and hard links."""
    names: dict[tuple[int, int], Path] = {}
    for folder, folders, files in os.walk(source):
        here = target / Path(folder).relative_to(source)
        here.mkdir(parents=True, exist_ok=True)
        here.chmod(os.stat(folder).st_mode & 0o7777)
        for name in files + [n for n in folders if Path(folder, n).is_symlink()]:
            old, new = Path(folder, name), here / name
            info = old.lstat()
            first = names.setdefault((info.st_dev, info.st_ino), new)
            if first is not new:
                os.link(first, new, follow_symlinks=False)
            elif old.is_symlink():
                new.symlink_to(os.readlink(old))
            else:
                new.write_bytes(old.read_bytes())
                new.chmod(info.st_mode & 0o7777)
                os.utime(new, ns=(info.st_atime_ns, info.st_mtime_ns))
    return target


def _forked(
    arm: Callable[[], Iterator[int]],
    work: Callable[[], object],
    fail: int,
    memory: bool = False,
) -> int:
    pid = os.fork()
    if pid == 0:
        code = BUG
        try:
            calls = arm()
            code = _outcome(work, FAILED if memory else BUG)
            if code == FINISHED and fail and next(calls) > fail:
                code = PASSED
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _arm(
    number: int,
    fail: int,
    last: Callable[[str, str, str], bool] = lambda *_: False,
    memory: bool = False,
) -> Iterator[int]:
    calls = itertools.count(1)

    def counted(name: str, call: Callable[..., object]) -> Callable[..., object]:
        def wrapped(*args: object, **more: object) -> object:
            if name == "open" and not int(args[1]) & WRITING:  # type: ignore[call-overload]
                return call(*args, **more)
            at = next(calls)
            if at == number or last(name, str(args[0]), str(args[1:2])):
                os._exit(KILLED)
            if at == fail and memory:
                raise MemoryError
            if at == fail:
                raise OSError(errno.EIO, os.strerror(errno.EIO), str(args[0]))
            return call(*args, **more)

        return wrapped

    for name in CALLS:
        setattr(os, name, counted(name, getattr(os, name)))
    return calls


def _outcome(work: Callable[[], object], bug: int) -> int:
    try:
        work()
    except Exception as error:  # an agent's error has a word
        return bug if getattr(error, "word", "bug") == "bug" else FAILED
    return FINISHED
