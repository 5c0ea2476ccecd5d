"""Which processes run on an environment, and which of them have loaded the distribution.

Read from /proc alone: nothing of a process is run, stopped or opened, and no folder that
only a process names is looked into (it may be on a disk that does not answer). A process
is told with its `proof`, the first of these that holds:

``mapped``: a file that RECORD lists is mapped into it;
``command``: its interpreter is the environment's, and its command line names a module or a
script of the distribution;
``child``: it runs on the environment, or cannot be looked into, and a process that is
proven is its parent, or a parent of that;
``environment``: it runs on the environment. What it imported leaves no trace: Python reads a
module and closes it.

An interpreter that many programs of a machine share proves nothing: such processes are
counted as `others`. Of a ``--target`` folder PYTHONPATH or the current folder speaks.
"""

from __future__ import annotations

import os
import time
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple

from patchq.agent import facts, guise, proc, programs, record, sought, state
from patchq.agent.environment import Environment
from patchq.agent.programs import Program
from patchq.agent.sought import Sought

# What must not hold up the answer of a commit that is done.
_FAILURES = (OSError, ArithmeticError, LookupError, MemoryError, TypeError, ValueError)
# Seconds to look for; 2,000 processes take 25 ms (docs/hosts.md).
ROOM = 2.0
_MOST, _RECEIPTS, _ABOVE = 500, 30, 16
# So many of the processes that cannot be looked into are named.
_NAMED = 20


class Seen(NamedTuple):
    """One process: its number, what /proc says of it, what to call it, how it is proven."""

    pid: int
    stat: proc.Stat
    name: str
    proof: str


def clock() -> Dict[str, Any]:
    """Return this moment: in nanoseconds since boot (of which boot), and since 1970."""
    up = time.clock_gettime_ns(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))
    return {"boot": proc.boot(), "up": up, "utc": time.time_ns()}


def running(here: Environment, done: bool = False) -> Optional[Dict[str, Any]]:
    """Return the processes of an environment, and the receipts to compare them with.

    `done`: the last transaction has ended just now; else its end is the ledger's time.
    None where nothing is installed or /proc says nothing.
    """
    now = time.time_ns()
    guise.regain()
    if here.installed is None:
        return None
    try:
        scan = _Scan(here)
        scan.run()
        found = scan.answer()
        if found["processes"]:
            found["receipts"], ended = _receipts(here.home)
            found["until"] = now if done else ended
        elif found["hidden"] or found["unreadable"] or found["unseen"]:
            # It was changed, or it was not: only then does it matter what was not seen.
            found["receipts"] = _receipts(here.home)[0][-1:]
    except _FAILURES:
        return None
    return found


def _receipts(home: str) -> Tuple[List[Dict[str, Any]], Optional[int]]:
    """Return what the newest receipts that changed the stack say of it, oldest first.

    And when the last one was written, after its files: the ledger's time, if it is its last.
    """
    found: List[Dict[str, Any]] = []
    ended = None
    lines = state.ledger(home).split(b"\n")[-2::-1]
    for number, line in enumerate(lines):
        one = state.receipt_of(line) or {}
        effect = one.get("effect")
        if isinstance(effect, dict) and effect.get("before") != effect.get("after"):
            told = ("id", "time", "verb", "host", "clock", "effect")
            found.append({key: one.get(key) for key in told})
            ended = ended if number else os.stat(home + "/ledger.jsonl").st_mtime_ns
        if len(found) == _RECEIPTS:
            break
    return found[::-1], ended


class _Scan:
    """One walk through /proc."""

    def __init__(self, here: Environment) -> None:
        assert here.installed is not None
        self.until = time.monotonic() + ROOM
        self.record = here.installed.record or b""
        self.sought: Sought = sought.of(here)
        self.found: Dict[int, Seen] = {}
        # Proven by a parent, if at all: those that belong to the environment, that are
        # another user's, and that wrote a title over all that would tell.
        self.waiting: List[Tuple[Seen, str]] = []
        self.unreadable: List[Seen] = []
        self.unseen = self.others = 0

    def run(self) -> None:
        """Look at every process."""
        for pid, exe in self._candidates():
            self._look(pid, exe)
        for seen, why in self.waiting:
            above = self._above(seen.stat.parent)
            if above is not None and above.proof != "environment":
                self.found[seen.pid] = seen._replace(proof="child")
            elif why == "unreadable":
                self.unreadable.append(seen)
            elif why == "belongs" and self.sought.dedicated:
                self.found[seen.pid] = seen
            elif why == "belongs":
                self.others += 1

    def answer(self) -> Dict[str, Any]:
        """Return what was found, as it travels."""
        told = []
        for seen in self.found.values():
            above = self._above(seen.stat.parent)
            told.append(
                {
                    "pid": seen.pid,
                    "parent": above.pid if above is not None else None,
                    "start": seen.stat.start,
                    "forked": above is not None and _forked(seen, above),
                    "name": seen.name,
                    "proof": seen.proof,
                }
            )
        return {
            **clock(),
            "ticks": os.sysconf("SC_CLK_TCK"),
            "processes": told,
            "unreadable": len(self.unreadable),
            "unread": [[seen.pid, seen.name] for seen in self.unreadable[:_NAMED]],
            "unseen": self.unseen,
            "others": self.others,
            "hidden": proc.hides(),
            "receipts": [],
            "until": None,
        }

    def _candidates(self) -> Iterator[Tuple[int, Optional[str]]]:
        """Yield processes that may be Python, with their program's file if it can be read.

        A program that embeds Python is known by the first of its processes.
        """
        embeds: Dict[str, bool] = {}
        pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
        for number, pid in enumerate(pids):
            if time.monotonic() > self.until or len(self.found) + len(self.waiting) >= _MOST:
                self.unseen = len(pids) - number
                return
            try:
                exe = os.readlink("/proc/%d/exe" % pid)
            except PermissionError:
                yield pid, None
                continue
            except OSError:  # it has ended, or is the kernel's own
                continue
            if exe not in embeds:
                python = exe == self.sought.exe or programs.is_python(exe)
                embeds[exe] = python or any(proc.mapped(pid, (b"/libpython",)))
            if embeds[exe]:
                yield pid, exe

    def _look(self, pid: int, exe: Optional[str]) -> None:
        line = proc.read(pid, "cmdline")
        argv = list(map(os.fsdecode, line.rstrip(b"\0").split(b"\0")))
        if not argv[0] or pid == os.getpid() or (exe is None and _is_other(argv[0])):
            return
        found = proc.stat(pid)
        if found is None or (exe is None and not _may_be_python(line, argv[0], found.thread)):
            return
        program = programs.program(argv)
        name = programs.name(program, found.thread)
        if name is None or name in ("patchq", "python -m patchq"):
            return
        seen = Seen(pid, found, name, "environment")
        belongs = self.sought.belongs(pid, argv[0], program, exe)
        proof = "command" if belongs and self._names(pid, program) else ""
        if not proof and exe is not None:
            proof = self._mapped(pid)
        again = proc.stat(pid)
        if again is None or again.start != found.start:
            return  # it ended, and its number may be another's
        if proof in ("command", "mapped"):
            self.found[pid] = seen._replace(proof=proof)
        elif belongs or proof:
            self.waiting.append((seen, "belongs"))
        elif exe is None:
            self.waiting.append((seen, "unreadable"))
        elif program.kind == "title" and exe == self.sought.exe:
            self.waiting.append((seen, "title"))

    def _names(self, pid: int, program: Program) -> bool:
        """Return whether a command line names a module or script of the distribution."""
        if program.kind == "script":
            path = os.path.normpath(os.path.join(proc.link(pid, "cwd"), program.value))
            program = program._replace(value=path)
            inside = self.sought.inside(path)
            if inside is not None and record.find(self.record, inside) is not None:
                return True
        return programs.names_package(program, self.sought.packages, self.sought.scripts)

    def _mapped(self, pid: int) -> str:
        """Return "mapped" for a file of the distribution, "site" for one beside it, or ""."""
        found, here = "", proc.link(pid, "ns/mnt") == self.sought.view
        for line in proc.mapped(pid, self.sought.mark):
            device, inode, path = line.split(None, 5)[3:]
            name = os.fsdecode(path.replace(b" (deleted)", b""))
            if not here and not _same(name, device, inode):
                continue
            found = "site"
            inside = self.sought.inside(name) or ""
            if inside.startswith(self.sought.tops) and record.find(self.record, inside):
                return "mapped"
        return found

    def _above(self, pid: int) -> Optional[Seen]:
        """Return the nearest process that was found, from this one upwards."""
        for _ in range(_ABOVE):
            if pid in self.found:
                return self.found[pid]
            found = proc.stat(pid)
            if found is None:
                return None
            pid = found.parent
        return None


def _same(name: str, device: bytes, inode: bytes) -> bool:
    """Return whether what another mount namespace has at a path is the file that is here."""
    own = facts.status(name)
    major, minor = (int(number, 16) for number in device.split(b":"))
    mapped = (os.makedev(major, minor), int(inode))
    return own is not None and (own.st_dev, own.st_ino) == mapped


def _is_other(first: str) -> bool:
    """Return whether a command line names a program that is not Python by its path."""
    return first.startswith("/") and not programs.is_python(first)


def _may_be_python(line: bytes, first: str, thread: str) -> bool:
    """Return whether another user's process looks like Python, or wrote itself a title.

    A title is written over all arguments, and setproctitle names the thread so, too; servers
    in C do one of both, and systemd puts its own in brackets.
    """
    if "::" in first or programs.is_python(first) or programs.is_python(thread):
        return True
    titled = line.endswith(b"\0\0") or not line.endswith(b"\0")
    return titled and os.fsencode(first)[:15] == os.fsencode(thread) and first[0] != "("


def _forked(seen: Seen, above: Seen) -> bool:
    """Return whether a process has the code that `above`, which it descends from, has loaded.

    Where the places of their programs cannot be read, each on the way must have run none.
    """
    if seen.stat.readable and above.stat.readable:
        return seen.stat.image == above.stat.image
    found: Optional[proc.Stat] = seen.stat
    for _ in range(_ABOVE):
        if found is None or not found.forked:
            return False
        if found.parent == above.pid:
            return True
        found = proc.stat(found.parent)
    return False
