"""The receipt of a transaction, and the second that its new files get as mtime."""

from __future__ import annotations

import binascii
import os
import sys
import time
from typing import Any, Dict, List, Mapping

from patchq.agent import environment, facts, processes, protocol, state
from patchq.agent.changes import Changes
from patchq.agent.environment import Environment
from patchq.agent.facts import RefusalError
from patchq.agent.journal import Entry, Journal

# What the controller knows and the agent only writes down.
_ASKED = ("verb", "whence", "queue", "commit", "dirty", "release", "chosen", "patches")


def make(
    here: Environment,
    request: Mapping[str, Any],
    journal: Journal,
    planned: Changes,
    kept: Mapping[str, str],
    mtime: int,
    ledger: bytes,
) -> Dict[str, Any]:
    """Return the receipt as the ledger will have it (`patchq.agent.state`)."""
    assert here.installed is not None
    before, stack = here.state or {}, request["stack"]
    known = before.get("environment") or _last(ledger).get("environment")
    return {
        "id": journal.id,
        "time": journal.since,
        **{key: request["receipt"].get(key) for key in _ASKED},
        "who": journal.who,
        **_agent(here),
        "distribution": here.distribution,
        "version": here.installed.version,
        "environment": known or binascii.hexlify(os.urandom(16)).decode(),
        "generation": planned.state["generation"] if planned.state else 0,
        "changes": [[e["path"], e["before"], e["after"]] for e in request["entries"]],
        "effect": {"before": state.effect(before.get("stack", [])), "after": state.effect(stack)},
        "kept": {entry.path: kept[entry.path] for entry in journal.entries if entry.path in kept},
        "mtime": mtime,
        "applied": _applied(stack),
        "notes": planned.notes,
        "prev": _prev(ledger),
    }


def set_aside(
    here: Environment, told: Mapping[str, Any], where: str, reason: str, ledger: bytes
) -> Dict[str, Any]:
    """Return the receipt of a record that recovery set aside; it moves no patch.

    `told`: who typed it and where, as the request has it.
    """
    name = binascii.hexlify(os.urandom(8)).decode()
    more = {"verb": "recover", "outcome": "set aside", "where": where, "notes": [reason]}
    return {**_unmoved(here, told, name, ledger, []), **more}


def abandoned(
    here: Environment, told: Mapping[str, Any], name: str, ledger: bytes
) -> Dict[str, Any]:
    """Return the receipt that forbids the commit `name`, which nobody waits for any more."""
    reason = "the link was lost before it began"
    more = {"verb": "settle", "outcome": "abandoned", "notes": [reason]}
    stack = (here.state or {}).get("stack", [])
    return {**_unmoved(here, told, name, ledger, stack), **more}


def _unmoved(
    here: Environment, told: Mapping[str, Any], name: str, ledger: bytes, after: List[Any]
) -> Dict[str, Any]:
    """Return a receipt that moves no patch; `after` is the stack that is left."""
    before, last = here.state or {}, _last(ledger)
    stack = before.get("stack", [])
    top = stack[-1] if stack else last
    return {
        "id": name,
        "time": told["since"],
        "who": told["who"],
        "whence": told["whence"],
        **_agent(here),
        "queue": top.get("queue") or "",
        "release": top.get("release") or "",
        "commit": None,
        "dirty": False,
        "chosen": "record",
        "patches": {},
        "distribution": here.distribution,
        "version": here.installed.version if here.installed else None,
        "environment": before.get("environment") or last.get("environment"),
        "generation": before.get("generation", 0) if after else 0,
        "changes": [],
        "effect": {"before": state.effect(stack), "after": state.effect(after)},
        "kept": {},
        "mtime": None,
        "applied": _applied(after),
        "prev": _prev(ledger),
    }


def _applied(stack: List[Any]) -> List[List[str]]:
    return [[patch["queue"], patch["patch"], patch["sha256"]] for patch in stack]


def named(name: str, ledger: bytes) -> bool:
    """Return whether the ledger has a receipt of this id, whatever it says."""
    return b'{"id":"%s"' % name.encode() in ledger


def unsettled(request: Mapping[str, Any], ledger: bytes) -> None:
    """Check that nobody settled this commit meanwhile (`patchq.agent.settle`)."""
    name = request.get("id")
    if name is not None and named(name, ledger):
        raise RefusalError(
            "settled",
            "this change was given up, or done, before its request was read",
            "the ledger has %s already" % name,
            "run the command again",
        )


def second(entries: List[Entry], here: Environment, ledger: bytes) -> int:
    """Return a whole second, not in the future, that no touched path ever had as its mtime.

    The ledger holds every second that was given to a file, and is searched as text.
    Bytecode has only 32 bits of a second.
    """
    originals = (here.state or {}).get("originals", {})
    taken = {kept["mtime_ns"] // 10**9 % 2**32 for kept in originals.values()}
    for entry in entries:
        if entry.role == "file" and entry.before["kind"] != "absent":
            there = facts.status(here.at(entry.path), follow=True)
            taken.add(there.st_mtime_ns // 10**9 % 2**32 if there is not None else 0)
    found = int(time.time())
    while found % 2**32 in taken or b"%d" % found in ledger:
        found -= 1
    return found


def _agent(here: Environment) -> Dict[str, Any]:
    there = facts.status(here.home + "/ledger.jsonl")
    return {
        "uid": os.getuid(),
        "user": environment.user(),
        "host": os.uname().nodename,
        "python": "%d.%d.%d" % sys.version_info[:3],
        "clock": dict(processes.clock(), ledger=there.st_mtime_ns if there is not None else None),
    }


def _line(ledger: bytes) -> bytes:
    return ledger.rstrip(b"\n").rpartition(b"\n")[2]


def _last(ledger: bytes) -> Dict[str, Any]:
    return state.receipt_of(_line(ledger)) or {}


def _prev(ledger: bytes) -> str:
    last = _line(ledger)
    return protocol.sha256(last) if last else ""
