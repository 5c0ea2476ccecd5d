"""Asking a user's command whether a host is well, here on the controller.

The command is run by ``/bin/sh -c``, without a terminal or stdin, in a process group of its
own; what it started ends with it. It says yes by its exit status, 0.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

# Seconds that one try may take at least, and between two tries.
TRY = 60.0
PAUSE = 2.0
_LOOK = 0.05
# What is told of what a command printed: the end of it.
_ROOM, _LINES = 4000, 10


@dataclass(frozen=True, slots=True)
class Check:
    """A command, its environment, and the seconds that it has until its no is an answer."""

    command: str
    environ: Mapping[str, str] = field(repr=False)
    wait: float = 0


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of it: `good` is None where the run was stopped first.

    `ended` says in words how the last try ended, `printed` what it printed last.
    """

    good: bool | None
    tries: int
    ended: str = ""
    printed: tuple[str, ...] = ()

    def to_json(self) -> dict[str, object]:
        """Return it as ``--json`` has it."""
        return {
            "good": self.good,
            "tries": self.tries,
            "ended": self.ended,
            "printed": list(self.printed),
        }


def ask(check: Check, stopped: Callable[[], bool], *, limit: float = TRY) -> Answer:
    """Run the command until it says yes or the time is up; a try has `limit` seconds at least."""
    until = time.monotonic() + check.wait
    tries = 0
    while not stopped():
        tries += 1
        room = max(limit, until - time.monotonic())
        try:
            code, printed, late = _try(check, time.monotonic() + room, stopped)
        except OSError as error:
            return Answer(False, tries, f"its command cannot be started: {error.strerror}")
        if code == 0 and not late:
            return Answer(True, tries)
        ended = f"no answer within {room:.3g} s" if late else _ended(code)
        lines = printed.decode("utf-8", "replace").rstrip().split("\n")[-_LINES:]
        told = tuple(line for line in lines if line.strip())
        if time.monotonic() >= until and not stopped():
            return Answer(False, tries, ended, told)
        pause = min(until, time.monotonic() + PAUSE)
        while time.monotonic() < pause and not stopped():
            time.sleep(_LOOK)
    return Answer(None, tries)


def _ended(code: int) -> str:
    return f"ended by signal {-code}" if code < 0 else f"exit status {code}"


def _try(check: Check, until: float, stopped: Callable[[], bool]) -> tuple[int, bytes, bool]:
    """Run the command once; return its status, the end of what it printed, whether it was late."""
    read, write = os.pipe()
    printed, late = b"", False
    looking = select.poll()  # where many hosts are connected to, select(2) has no room
    looking.register(read, select.POLLIN)
    with open(read, "rb"):
        with open(write, "wb"):
            child = subprocess.Popen(
                ["/bin/sh", "-c", check.command],
                stdin=subprocess.DEVNULL,
                stdout=write,
                stderr=write,
                env=dict(check.environ),
                start_new_session=True,
            )
        while True:
            ended = late or child.poll() is not None
            if ended:
                _end(child)
            ready = looking.poll(0 if ended else _LOOK * 1000)
            data = os.read(read, 1 << 16) if ready else b""
            printed = (printed + data)[-_ROOM:]
            if ready and not data:  # nobody can print any more
                looking.unregister(read)
            over = time.monotonic() > until
            if ended and (not ready or over):  # who left its group may still hold the pipe
                return child.returncode, printed, late
            late = late or ((over or stopped()) and child.poll() is None)


def _end(child: subprocess.Popen[bytes]) -> None:
    """End the command and all that is in its group."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
