"""Answer ``settle``: what became of a commit whose answer was lost.

The commit is named by the id that its request had. Under the writer's lock it is either
in the ledger, or it never will be: its id is written there as abandoned, and a commit
whose id the ledger has is refused (`verify.unsettled`). So the answer stays true,
even where the agent that was lost still reads the request.
"""

from __future__ import annotations

import os
from typing import Any, Dict, Mapping, Optional

from patchq.agent import environment, journal, lock, receipt, recover, state, verify
from patchq.agent.environment import Environment


def settle(request: Mapping[str, Any]) -> Dict[str, Any]:
    """Return the receipt of the commit, None where it was not done and will not be."""
    verify.identity(request)
    here = environment.locate(dict(request, paths=[]))
    if here.installed is None or (here.refusal and here.refusal.word == "not-writable"):
        return {"receipt": None}  # a commit is refused there, too
    if os.path.isdir(here.home):
        verify.own_folders(here.home)
    told = recover.told(dict(request["receipt"]))
    with lock.Lock(here.home, told):
        if journal.load(here.home) is not None:
            recover.resume(here, told, None)
        found = _find(here, request["id"])
        if found is None:
            now = environment.locate(dict(request, paths=[]))
            ledger = state.ledger(here.home)
            line = state.dump(receipt.abandoned(now, told, request["id"], ledger))
            journal.append(here.home, len(ledger), line)
        return {"receipt": found}


def _find(here: Environment, name: str) -> Optional[Dict[str, Any]]:
    receipts, _ = state.receipts(here.home)
    same = [one for one in receipts if one["id"] == name and one.get("outcome") != "abandoned"]
    return same[-1] if same else None
