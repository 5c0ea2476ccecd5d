"""Run a command and tell what it cost: wall time, CPU of all its processes, memory.

The command runs below a process of its own that adopts what the command leaves
running (an ssh master of ControlPersist), ends it, and counts it, too.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_PR_SET_CHILD_SUBREAPER = 36


@dataclass(frozen=True)
class Cost:
    """Seconds of wall and CPU; `rss`: MB, the largest of its processes; what it said."""

    wall: float
    cpu: float
    rss: float
    code: int
    output: str


def measure(argv: Sequence[str | Path], environ: Mapping[str, str]) -> Cost:
    """Run a command to its end, whatever its exit code."""
    reading, writing = os.pipe()
    with open(reading) as told:
        done = subprocess.run(
            [sys.executable, __file__, str(writing), *map(str, argv)],
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            pass_fds=[writing],
        )
        os.close(writing)
        return Cost(**json.loads(told.read()), output=done.stdout)


def _children() -> list[int]:
    mine = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError):
                status = Path("/proc", entry, "stat").read_text().rpartition(")")[2].split()
                if int(status[1]) == os.getpid():
                    mine.append(int(entry))
    return mine


def _main(told: int, argv: list[str]) -> None:
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    os.set_inheritable(told, False)
    start = time.perf_counter()
    pid = os.posix_spawnp(argv[0], argv, os.environ)
    _, status = os.waitpid(pid, 0)
    wall = time.perf_counter() - start
    while children := _children():
        for child in children:
            os.kill(child, signal.SIGTERM)
        for child in children:
            os.waitpid(child, 0)
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    cost = {
        "wall": wall,
        "cpu": usage.ru_utime + usage.ru_stime,
        "rss": usage.ru_maxrss / 1024,
        "code": os.waitstatus_to_exitcode(status),
    }
    os.write(told, json.dumps(cost).encode())


if __name__ == "__main__":
    _main(int(sys.argv[1]), sys.argv[2:])
