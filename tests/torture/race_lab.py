"""Two operators on one tree, and which of them runs when.

An operator is the agent as a real process. strace stops it (SIGSTOP) at system calls that
a test chooses by number, counted from its request on; who is stopped stays so until
`Operator.go_on`. strace can also take flock(2) away, as a file system without it does.
"""

from __future__ import annotations

import csv
import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from patchq.agent import protocol
from tests.agent import agent_lab
from tests.agent.agent_lab import Controller, Process

# What changes the tree, and what takes the lock: between any two of them others may run.
CHANGES = (
    "mkdir,rmdir,rename,link,linkat,unlink,symlink,write,pwrite64,ftruncate,fsync,fchmod,fchown"
)
LOCKED = CHANGES + ",flock,openat"
# What a reader does: it changes nothing, and sees the tree bit by bit.
LOOKS = "openat,newfstatat,readlink,getdents64,flock"
_STOPPED = "--- stopped by SIGSTOP"


def strace() -> str:
    """Return the path of strace, without which nothing here can be shown."""
    return tool("strace")


def tool(name: str) -> str:
    """Return the path of a program that the lab needs."""
    found = shutil.which(name)
    assert found, f"{name} is not installed here, and this test needs the real one"
    return found


def until(true: Callable[[], object]) -> None:
    """Wait until something is true, a minute at most."""
    for _ in range(30_000):
        if true():
            return
        time.sleep(0.002)
    raise AssertionError("it did not come about")


def answer(process: Process) -> dict[str, Any]:
    """Return what an agent answers: ``ok`` or ``error``."""
    head, tail = protocol.lengths(process.receive.read(protocol.HEADER.size))
    return protocol.unpack(process.receive.read(head), process.receive.read(tail))[0]


def stopping(calls: str, when: str) -> list[str]:
    """Return strace's options that stop a process after calls of these numbers."""
    return ["-e", f"inject={calls}:signal=STOP:when={when}"] if when else []


def spots(trace: Path) -> list[tuple[str, str]]:
    """Return a spot (``rename:3``: strace counts each call by itself) and its line, in order."""
    made: Counter[str] = Counter()
    found = []
    first = ""
    for line in trace.read_text().splitlines():
        call = re.match(r"(\d+ +)?([a-z]\w+)\(", line)
        if call is None:
            continue
        first = first or (call[1] or "")  # of many processes, the first
        if (call[1] or "") == first:
            made[call[2]] += 1
            found.append((f"{call[2]}:{made[call[2]]}", line))
    return found


class Operator(Process):
    """An agent that may be stopped between two of its system calls."""

    def __init__(self, python: str | None = None, **options: Any) -> None:
        super().__init__(*([python] if python else []), **options)
        self._tracer: subprocess.Popen[bytes] | None = None
        self._seen = 0
        self.trace = Path()

    @property
    def pid(self) -> int:
        """The agent's process id."""
        return self.process.pid

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            os.kill(self.pid, signal.SIGCONT)
        super().__exit__()
        if self._tracer is not None:
            self._tracer.terminate()
            self._tracer.wait()

    def held(self, folder: Path, calls: str, when: str, flock: str | None = None) -> Operator:
        """Let strace stop it: at a `Spot` of these calls, or nowhere ("").

        ``7+3``: at the 7th of each call, and each third after it. `flock`: the error that
        flock(2) gives from now on.
        """
        self.trace = folder / f"trace-{self.pid}"
        names = [name for name in calls.split(",") if not (flock and name == "flock")]
        argv = [strace(), "-qq", "-o", str(self.trace), "-p", str(self.pid)]
        argv += ["-e", "trace=" + ",".join([*names, "flock"])]
        if flock:
            argv += ["-e", f"inject=flock:error={flock}"]
        call, _, number = when.rpartition(":")
        if not (flock and call == "flock"):
            argv += stopping(call or ",".join(names), number)
        self._tracer = subprocess.Popen(argv)
        while "TracerPid:\t0\n" in Path(f"/proc/{self.pid}/status").read_text():
            assert self._tracer.poll() is None, "strace could not attach"
            time.sleep(0.001)
        return self

    def begin(self, message: Mapping[str, Any], blobs: Mapping[str, bytes] | None = None) -> None:
        """Send a request and wait for nothing."""
        self.send.write(protocol.pack(message, blobs))
        self.send.flush()

    def runs(self) -> bool:
        """Let it run until it is stopped (True) or has answered (False)."""
        for _ in range(20_000):
            stops = self.trace.read_text().count(_STOPPED) if self._tracer else 0
            if stops > self._seen:
                self._seen = stops
                return True
            if select.select([self.receive], [], [], 0.002)[0]:
                return False
            assert self.process.poll() is None, self.process.stderr
        raise AssertionError("it neither stops nor answers")

    def go_on(self) -> bool:
        """Let it go on; whether it was stopped again before it answered."""
        os.kill(self.pid, signal.SIGCONT)
        return self.runs()

    def to_end(self) -> dict[str, Any]:
        """Let it go on whenever it is stopped; return its answer."""
        while self.go_on():
            pass
        return self.answer()

    def answer(self) -> dict[str, Any]:
        """Return its answer: ``ok`` or ``error``."""
        return answer(self)

    def spots(self) -> list[str]:
        """Return the calls that it has made, in order, each as a spot to stop it at."""
        return [spot for spot, _ in spots(self.trace)]


@contextmanager
def operators(number: int = 2) -> Iterator[list[Operator]]:
    """Keep so many agents, started and waiting for a request."""
    found = [Operator() for _ in range(number)]
    for one in found:
        one.__enter__()
    try:
        yield found
    finally:
        for one in found:
            one.__exit__()


def shape(site: Path) -> dict[str, Any]:
    """Return what a serial run would leave as well: files, and what is recorded of them."""
    files = {
        str(path.relative_to(site)): (path.stat().st_mode, path.read_bytes())
        for path in site.rglob("*")
        if path.is_file() and not {".patchq", "__pycache__"} & set(path.parts)
    }
    document = site / ".patchq/demo/state.json"
    state = json.loads(document.read_bytes()) if document.exists() else {"stack": []}
    stack = [(patch["queue"], patch["patch"]) for patch in state["stack"]]
    return {"files": files, "stack": stack, "originals": sorted(state.get("originals", ()))}


def disagreements(site: Path) -> list[str]:
    """Return what does not agree: files, RECORD, state, ledger, and what is left over."""
    found = []
    home = site / ".patchq/demo"
    survey = Controller(site).survey(want=["ledger"])
    found += [k for k in ("interrupted", "busy", "orphaned", "ledger_broken") if survey[k]]
    with next(site.glob("demo-*.dist-info")).joinpath("RECORD").open(newline="") as file:
        rows = {row[0]: row[1] for row in csv.reader(file)}
    for path, digest in rows.items():
        if not (site / path).exists():
            found.append(f"RECORD has {path}")
        elif digest and digest != _digest((site / path).read_bytes()):
            found.append(f"RECORD has another {path}")
    there = {str(path.relative_to(site)) for path in (site / "demo").rglob("*")}
    there = {path for path in there if (site / path).is_file() and "__pycache__" not in path}
    found += [f"RECORD has no {path}" for path in sorted(there - set(rows))]
    state = survey["state"] or {"stack": [], "originals": {}}
    last = {path: after for patch in state["stack"] for path, _, after in patch["changes"]}
    for path, after in last.items():
        if agent_lab.state_of(agent_lab.file_at(site / path)) != after:
            found.append(f"the stack has another {path}")
    moved = [one for one in survey["ledger"] if one.get("outcome") != "abandoned"]
    applied = [[p["queue"], p["patch"], p["sha256"]] for p in state["stack"]]
    if (moved[-1]["applied"] if moved else []) != applied:
        found.append("the ledger ends with another stack")
    kept = {"originals/" + one["name"] for one in state["originals"].values() if one["name"]}
    if survey["state"] and state["dist_info"]["original"]:
        kept.add("originals/" + state["dist_info"]["original"])
    allowed = {"lock", "ledger.jsonl", *kept}
    if survey["state"]:
        allowed |= {"state.json", "patches.json", "originals"}
    left = {str(path.relative_to(home)) for path in home.rglob("*")}
    left = {name for name in left if name.split("/")[0] != "aside"}
    found += [f".patchq has {name}" for name in sorted(left - allowed)]
    found += [f".patchq has no {name}" for name in sorted(kept - left)]
    if (home / "lock").exists() and (home / "lock").read_bytes():
        found.append("the lock names somebody")
    return found


def _digest(data: bytes) -> str:
    return agent_lab.record_row("x", data).split(",")[1]


HOLDER = """
import os, sys
sys.path.insert(0, sys.argv[1])
from patchq.agent import facts, lock
told = {"who": "holder", "host": "h", "pid": os.getpid(), "since": "now"}
try:
    with lock.Lock(sys.argv[2], told):
        print("held", flush=True)
        sys.stdin.read()
except facts.RefusalError as error:
    print(error.word, error.why, error.mend, flush=True)
"""
NO_FLOCK = ("-qq", "-f", "-o", "/dev/null", "-e", "trace=flock", "-e", "inject=flock:error=ENOLCK")


class Holding:
    """A process that takes the writer's lock and keeps it; `said` is what came of that.

    `around` is a command that becomes another, as ``unshare``; `flock` False: there is none.
    """

    def __init__(self, site: Path, *around: str, flock: bool = False) -> None:
        root = str(Path(agent_lab.SOURCES).parents[1])
        argv = [sys.executable, "-c", HOLDER, root, str(site / ".patchq/demo")]
        tracer = () if flock else (strace(), *NO_FLOCK)
        self.process = subprocess.Popen(
            [*tracer, *around, *argv],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert self.process.stdout
        self.said = self.process.stdout.readline().strip()

    def __enter__(self) -> Holding:
        return self

    def kill(self) -> None:
        """Kill it, and what stands around it, without a word."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            assert self.process.stdin
            self.process.stdin.close()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.kill()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe:
                pipe.close()


class Installer:
    """pip as a real process, which may be stopped at calls that change the tree."""

    CALLS = "mkdir,rmdir,rename,link,linkat,unlink,symlink,openat,write"

    def __init__(self, argv: list[str], trace: Path, when: str = "") -> None:
        self.trace, self._seen = trace, 0
        calls = self.CALLS
        tracer = [strace(), "-f", "-qq", "-o", str(trace), "-e", f"trace={calls}"]
        call, _, number = when.rpartition(":")
        tracer += stopping(call, number)
        environ = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
        self.process = subprocess.Popen(
            [*tracer, *argv], env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )

    def runs(self) -> bool:
        """Let it run until it is stopped (True) or has ended (False)."""
        while self.process.poll() is None:
            stops = self.trace.read_text().count(_STOPPED) if self.trace.exists() else 0
            if stops > self._seen:
                self._seen = stops
                return True
            time.sleep(0.002)
        return False

    def to_end(self) -> None:
        """Let it go on to its end."""
        for line in self.trace.read_text().splitlines():
            if _STOPPED in line:
                os.kill(int(line.split()[0]), signal.SIGCONT)
        out, _ = self.process.communicate()
        assert self.process.returncode == 0, out.decode()

    def spots_in(self, site: Path) -> list[str]:
        """Return the calls that change something in a tree."""
        return [
            spot
            for spot, line in spots(self.trace)
            if str(site) in line and ("openat" not in line or "O_CREAT" in line)
        ]
