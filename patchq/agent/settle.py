"""Answer ``settle``: what became of a commit whose answer was lost.

The commit is named by the id that its request had. Either the ledger has its receipt, or,
under the writer's lock, its id is written there as abandoned, and a commit whose id the
ledger has is refused (`receipt.unsettled`). So the answer stays true, even where the
agent that was lost still reads the request. Where neither can be had, nothing is said
but why: a refusal, and the outcome stays unknown.
"""

from __future__ import annotations

import os
from typing import Any, Dict, Mapping, Optional

from patchq.agent import environment, facts, journal, lock, receipt, recover, scan, state, verify
from patchq.agent.environment import Environment
from patchq.agent.facts import RefusalError


def settle(request: Mapping[str, Any]) -> Dict[str, Any]:
    """Return the receipt of the commit, None where it was not done and will not be.

    ``last`` is False where the environment was changed again since.
    """
    verify.identity(request)
    here = environment.locate(dict(request, paths=[]))
    there = facts.is_folder(here.home)
    if there:
        verify.own_folders(here.home)
    found = _find(here, request["id"])
    if found is None and receipt.named(request["id"], state.ledger(here.home)):
        return {"receipt": None, "last": True}  # given up already
    if found is None or journal.load(here.home) is not None:
        if here.refusal is not None and (not there or here.refusal.word == "not-writable"):
            raise here.refusal
        found = _under_lock(here, request)
    return {"receipt": found, "last": found is None or _is_last(here, found)}


def _under_lock(here: Environment, request: Mapping[str, Any]) -> Optional[Dict[str, Any]]:
    told = recover.told(dict(request["receipt"]))
    with lock.Lock(here.home, told):
        if journal.load(here.home) is not None:
            recover.resume(here, told, None)
        found = _find(here, request["id"])
        if found is None:
            now = environment.locate(dict(request, paths=[]))
            _unchanged(now, request)
            ledger = state.ledger(here.home)
            line = state.dump(receipt.abandoned(now, told, request["id"], ledger))
            journal.append(here.home, len(ledger), line)
        return found


def _find(here: Environment, name: str) -> Optional[Dict[str, Any]]:
    receipts, _ = state.receipts(here.home)
    same = [one for one in receipts if one["id"] == name and one.get("outcome") != "abandoned"]
    return same[-1] if same else None


def _unchanged(here: Environment, request: Mapping[str, Any]) -> None:
    """Check that a commit without a receipt left no trace: a ledger can be lost, too."""
    name = str(request["id"])
    stack = here.state["stack"] if here.state else []
    torn = facts.optional(os.path.join(here.home, "ledger.jsonl")) or b""
    torn = torn[len(state.ledger(here.home)) :]
    expected = (request.get("expect") or {}).get("generation", 0)
    generation = here.state["generation"] if here.state else 0
    if any(one.get("receipt") == name for one in stack) or name.encode() in torn:
        why = "the ledger was cut: it has no receipt of a change that left its marks"
    elif generation != expected:
        why = "expected generation %s, found %s, and no receipt says why" % (expected, generation)
    else:
        return
    raise RefusalError(
        "broken-ledger", "nobody can say what became of the change", why, "patchq status"
    )


def _is_last(here: Environment, found: Mapping[str, Any]) -> bool:
    """Return whether the recorded stack is still the one that the receipt left."""
    receipts, _ = state.receipts(here.home)
    moved = [one["id"] for one in receipts if one.get("outcome") != "abandoned"]
    stack = (state.load(here.home) or {"stack": []})["stack"]
    if scan.orphaned(here) is not None:
        return False
    return moved[-1:] == [found["id"]] and state.effect(stack) == found["effect"]["after"]
