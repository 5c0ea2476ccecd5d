"""Which code a running process has: today's, or what was there before a transaction.

Pure: what an agent found in /proc (`patchq.agent.processes`) and the receipts in, a
`Running` out. A process has the code that was there when it started, or, where it was
forked and runs no program of its own, when the process that it was forked from did. A
receipt's files change at some moment between two times that are known; what started in
between is `State.UNKNOWN`. Times are those since the kernel's boot, which nobody sets;
receipts of another boot, or without such a time, are placed by the wall clock, with some
seconds to either side.

What counts is the effect of the stack: who started before a push that was taken back since
has today's code.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

_SECOND = 10**9
# How long the renames may take where nothing says when they ended.
_LONGEST = 10 * _SECOND
# How far two wall clocks, or one that was set, are taken to differ.
_SKEW = 5 * _SECOND
_HOUR = 3600 * _SECOND
# How much of a text that a host gives is told, and how many processes; an agent of ours sends
# some 500.
_TOLD, _MOST = 100, 1_000
# What vLLM calls its processes: set_process_title (0.16.0, vllm/utils/system_utils.py:163),
# with a prefix that VLLM_PROCESS_NAME_PREFIX gives.
_KINDS = (
    (
        "API server",
        re.compile(r"\S*::APIServer(_\d+)?|vllm serve|python -m vllm\.entrypoints\b.*"),
    ),
    ("engine core", re.compile(r"\S*::EngineCore(_\w+)?")),
    ("worker", re.compile(r"\S*::Worker(_\w+)?")),
    ("coordinator", re.compile(r"\S*::DPCoordinator")),
)
_PROOFS = ("mapped", "command", "child", "environment")


class State(enum.Enum):
    """The code of a process: today's, that of before a receipt, or one of the two."""

    CURRENT = "current"
    BEFORE = "before"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Receipt:
    """A receipt that changed the stack: from which effect to which, between which times."""

    id: str
    time: str
    verb: str
    before: str
    after: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Process:
    """One process: `server` is the topmost one of its tree.

    `receipt` was the last one when it started, None for before any that is known; `since`
    is the first one that it did not see. `code` is the effect that it has, None where it
    may have one or another.
    """

    pid: int
    name: str
    kind: str
    proof: str
    server: int
    state: State
    receipt: Receipt | None
    since: Receipt | None
    code: str | None

    @property
    def proven(self) -> bool:
        """True where it is known to have loaded the distribution."""
        return self.proof != "environment"

    def to_json(self) -> dict[str, object]:
        """Return the process as ``--json`` has it."""
        return {
            "pid": self.pid,
            "name": self.name,
            "kind": self.kind,
            "proof": self.proof,
            "server": self.server,
            "state": self.state.value,
            "receipt": self.receipt.id if self.receipt else None,
        }


@dataclass(frozen=True, slots=True)
class Running:
    """The processes of an environment; how many could not be looked into, or not in time.

    `others` run on the same interpreter, which is not the environment's alone. `hidden`:
    other users' processes are not shown there, and may be as many as they like. `unread`
    are numbers and names of the first that could not be looked into.
    """

    processes: tuple[Process, ...]
    unreadable: int = 0
    unseen: int = 0
    others: int = 0
    managed: bool = True
    hidden: bool = False
    unread: tuple[tuple[int, str], ...] = ()

    def of(self, state: State, *, proven: bool = True) -> tuple[Process, ...]:
        """Return the processes in one state: those that are proven, or the others."""
        return tuple(p for p in self.processes if p.state is state and p.proven is proven)

    @property
    def mixed(self) -> tuple[tuple[Process, ...], ...]:
        """The servers whose processes are known to have different code."""
        trees: dict[int, list[Process]] = {}
        for one in self.processes:
            if one.proven:
                trees.setdefault(one.server, []).append(one)
        return tuple(
            tuple(tree) for tree in trees.values() if len({p.code for p in tree if p.code}) > 1
        )

    def to_json(self) -> dict[str, object]:
        """Return what ``--json`` has of it."""
        return {
            "processes": [one.to_json() for one in self.processes],
            "restart": [one.pid for one in self.of(State.BEFORE)],
            "mixed": [[one.pid for one in tree] for tree in self.mixed],
            "unreadable": self.unreadable,
            "unread": [{"pid": pid, "name": name} for pid, name in self.unread],
            "unseen": self.unseen,
            "others": self.others,
            "hidden": self.hidden,
        }


def read(answer: object) -> Running | None:
    """Return what an agent's answer says, None where it was not asked or makes no sense."""
    try:
        return _read(answer)
    except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError):
        return None


def _read(answer: Any) -> Running:
    if max(len(answer["processes"]), len(answer["receipts"])) > _MOST:
        raise ValueError
    found = {int(one["pid"]): one for one in answer["processes"]}
    receipts = _placed(answer)
    tick = _SECOND // int(answer["ticks"])
    return Running(
        tuple(_process(pid, found, receipts, tick) for pid in sorted(found)),
        int(answer["unreadable"]),
        int(answer["unseen"]),
        int(answer["others"]),
        managed=bool(receipts),
        hidden=bool(answer.get("hidden")),
        unread=tuple((int(pid), _plain(name)) for pid, name in answer.get("unread", ())[:_MOST]),
    )


def _process(pid: int, found: Mapping[int, Any], receipts: list[Receipt], tick: int) -> Process:
    one = found[pid]
    above = list(_above(pid, found))
    image = pid
    for parent in above:
        if not found[image].get("forked"):
            break
        image = parent
    start = int(found[image]["start"]) * tick
    held = [each for each in receipts if each.last <= start]
    late = [each for each in receipts[len(held) :] if start + tick <= each.first]
    between = receipts[len(held) : len(receipts) - len(late)]
    first = held[-1].after if held else receipts[0].before if receipts else ""
    codes = {first, *(each.after for each in between)}
    now = receipts[-1].after if receipts else ""
    state = State.CURRENT if codes == {now} else State.UNKNOWN if now in codes else State.BEFORE
    name = _plain(one["name"])
    return Process(
        pid,
        name,
        kind(name),
        _PROOFS[_PROOFS.index(one["proof"])],
        above[-1] if above else pid,
        state,
        held[-1] if held else None,
        next(iter((*between, *late)), None),
        first if len(codes) == 1 else None,
    )


def kind(name: str) -> str:
    """Return what a process is to its server.

    >>> kind("VLLM::Worker_DP0_TP1_EP1")
    'worker'
    """
    return next((word for word, pattern in _KINDS if pattern.fullmatch(name)), "program")


def _above(pid: int, found: Mapping[int, Any]) -> Iterable[int]:
    """Yield the processes above one that were found, too, the nearest first."""
    seen = {pid}
    while (parent := found[pid].get("parent")) in found and parent not in seen:
        seen.add(parent)
        yield parent
        pid = parent


def _placed(answer: Any) -> list[Receipt]:
    """Return the receipts with the times between which their files changed, oldest first."""
    listed = list(answer["receipts"])
    firsts = [_first(one, answer) for one in listed]
    placed: list[Receipt] = []
    for number, one in enumerate(listed):
        ours = _same_boot(one, answer)
        last = firsts[number] + _LONGEST + (0 if ours else 2 * _SKEW + _SECOND)
        after = listed[number + 1] if number + 1 < len(listed) else None
        ended = answer["until"] if after is None else (after.get("clock") or {}).get("ledger")
        if ours and ended is not None:
            took = int(ended) - int(one["clock"]["utc"])
            last = firsts[number] + took if 0 <= took <= _HOUR else last
        if after is not None:  # one writer at a time
            last = min(last, max(firsts[number], firsts[number + 1]))
        placed.append(
            Receipt(
                _plain(one["id"]),
                _plain(one["time"]),
                _plain(one["verb"]),
                str(one["effect"]["before"]),
                str(one["effect"]["after"]),
                firsts[number],
                last,
            )
        )
    return placed


def _first(receipt: Any, answer: Any) -> int:
    """Return a time at which the receipt's files were not changed yet."""
    if _same_boot(receipt, answer):
        return int(receipt["clock"]["up"])
    told = int(datetime.fromisoformat(receipt["time"]).timestamp()) * _SECOND
    return told - int(answer["utc"]) + int(answer["up"]) - _SKEW


def _same_boot(receipt: Any, answer: Any) -> bool:
    clock = receipt.get("clock")
    return bool(clock and clock["boot"] and clock["boot"] == answer["boot"])


def _plain(text: object) -> str:
    """Return a text of a host as it goes into a line, of some length at most."""
    return "".join(char if char.isprintable() else "?" for char in str(text)[:_TOLD])
