"""Work in a process of its own that may use so much processor time and memory, and no more."""

from __future__ import annotations

import os
import resource
import signal
import traceback
from collections.abc import Callable

MIB = 1 << 20


class Slow(BaseException):
    """One case took more processor time than it may; no `except Exception` hides it."""


def confined(
    work: Callable[[], object], *, seconds: int = 60, memory: int = 1 << 10, handles: int = 256
) -> str:
    """Run `work` in a forked process; return why it failed, "" where it did not.

    `seconds`: of processor time. `memory`: MiB beside what the process has already.
    """
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        code = 1
        try:
            _confine(seconds, memory, handles)
            work()
            code = 0
        except BaseException:
            os.write(writer, traceback.format_exc()[-8000:].encode(errors="replace"))
        finally:
            os._exit(code)
    os.close(writer)
    with open(reader, "rb") as file:
        told = file.read().decode(errors="replace")
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return told if code == 1 else f"ended by signal {-code}" if code else ""


def timed(work: Callable[[], object], seconds: float = 2) -> None:
    """Run `work`; raise `Slow` where it takes more processor time. The main thread's only."""
    signal.signal(signal.SIGPROF, _slow)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        work()
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def _slow(*_: object) -> None:
    raise Slow


def _confine(seconds: int, memory: int, handles: int) -> None:
    with open("/proc/self/statm") as file:
        pages = int(file.read().split()[0])
    most = pages * resource.getpagesize() + memory * MIB
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_NOFILE, (handles, handles))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
