"""Answer ``recover``: finish or undo what was interrupted."""

from __future__ import annotations

import os
from typing import Any, Dict, Mapping, Optional, Sequence

from patchq.agent import (
    environment,
    facts,
    grafts,
    guise,
    journal,
    lock,
    protocol,
    receipt,
    remains,
    renames,
    scan,
    stage,
    state,
    verify,
)
from patchq.agent.environment import Environment
from patchq.agent.facts import RefusalError
from patchq.agent.journal import Entry, Journal
from patchq.agent.renames import Ground


def recover(request: Mapping[str, Any]) -> Dict[str, Any]:
    """Finish or undo what was interrupted; set aside what lost its distribution."""
    here = environment.locate(dict(request, paths=[]))
    if not facts.is_folder(here.home):
        return {"outcome": "nothing", "paths": []}
    if here.refusal is not None and here.refusal.word == "not-writable":
        raise here.refusal
    verify.own_folders(here.home)
    by = told(request)
    with lock.Lock(here.home, by):
        return resume(here, by, request.get("force"))


def resume(here: Environment, by: Mapping[str, Any], force: Optional[str]) -> Dict[str, Any]:
    """Finish or undo what is there; the caller has the lock, and `told` of who asks."""
    ground = Ground(here.site, here.home)
    found = journal.load(here.home)
    if found is None:
        return _without_journal(here, by)
    if not guise.fits(here.site, [entry.path for entry in found.entries]):
        guise.regain()
    # Who was stopped may not have come to it: what decides must not come or go any more.
    stage.sync(here.home)
    paths = [entry.path for entry in found.entries if entry.role == "file"]
    finished = journal.finished(here.home)
    gone = not facts.is_folder(os.path.join(here.site, found.dist_info["name"]))
    if not finished and (gone or (force is None and lost(ground, found))):
        return set_aside(here, by, found)
    verify.reachable(here.site, found.entries, found.modules)
    if finished:
        renames.settle(ground, found)
        return {"outcome": "finished", "paths": paths}
    return {"outcome": _resume(ground, found, force), "paths": paths}


def clear_up(here: Environment) -> None:
    """Clear up what an earlier, finished transaction left, and a draft that never became one."""
    verify.own_folders(here.home)
    found = journal.load(here.home)
    ground = Ground(here.site, here.home)
    if found is None:
        journal.remove(os.path.join(here.home, "journal.new"))
        if journal.names(here.home + "/stage"):
            renames.clear_stage(ground)
    elif journal.finished(here.home):
        verify.reachable(here.site, found.entries, found.modules)
        renames.settle(ground, found)


def _without_journal(here: Environment, by: Mapping[str, Any]) -> Dict[str, Any]:
    """Set aside a record that lost its distribution, or clear up after a draft."""
    state.load(here.home)  # a damaged record is told here, too
    journal.remove(os.path.join(here.home, "journal.new"))
    reason = scan.orphaned(here)
    if reason is not None:
        assert here.state is not None
        return _set_aside(here, by, str(here.state["generation"]), reason)
    renames.clear_stage(Ground(here.site, here.home))
    return {"outcome": "nothing", "paths": []}


def _resume(ground: Ground, found: Journal, force: Optional[str]) -> str:
    go = journal.decided(ground.home)
    if force is None:
        third = renames.strangers(ground, found)
        if third:
            raise RefusalError(
                "third-content",
                "an interrupted transaction cannot be recovered by itself: %s" % ", ".join(third),
                "what is there is neither what was before it nor what it was to put there",
                "patchq recover --force-old (or --force-new)",
            )
    if force == "new" and not go:
        missing = [e.path for e in found.entries if e.new and not ground.staged(e.new)]
        if missing or ground.staged("receipt") is None:
            raise RefusalError(
                "not-staged",
                "the new files of the interrupted transaction are not all there",
                "it stopped while it staged %s" % (", ".join(missing) or "the receipt"),
                "patchq recover --force-old",
            )
        journal.go(ground.home)
        go = True
    if go and force != "old":
        renames.forward(ground, found, force == "new")
        renames.settle(ground, found)
        return "finished"
    if go:
        journal.revoke(ground.home)
    renames.undo(ground, found, force == "old")
    return "undone"


def lost(ground: Ground, found: Journal) -> bool:
    """Return whether the dist-info is not the one that the transaction was made for."""
    folder = os.path.join(ground.site, found.dist_info["name"])
    metadata = facts.optional(os.path.join(folder, "METADATA"), follow=True)
    digest = None if metadata is None else protocol.sha256(metadata)
    if digest != found.dist_info["metadata"]:
        return True
    info = os.stat(folder)
    if [info.st_dev, info.st_ino] == list(found.dist_info["inode"]):
        return False
    return any(e.role == "record" and not renames.is_ours(ground, e) for e in found.entries)


def set_aside(here: Environment, by: Mapping[str, Any], found: Journal) -> Dict[str, Any]:
    """Set a transaction aside whose distribution is another one now: nothing is given back."""
    reason = "%s is not the one that it was made for" % found.dist_info["name"]
    return _set_aside(here, by, found.id, reason, found.entries)


def _set_aside(
    here: Environment, by: Mapping[str, Any], name: str, reason: str, entries: Sequence[Entry] = ()
) -> Dict[str, Any]:
    """Move journal, state and originals where nothing reads them; the ledger tells it.

    What the patches created and no installer took away goes (`patchq.agent.remains`).
    `entries`: those of the journal.
    """
    home = here.home
    lock.make_folder(home + "/aside", os.stat(home))
    target = home + "/aside/" + name
    number = 0
    while facts.exists(target):
        number += 1
        target = "%s/aside/%s.%d" % (home, name, number)
    lock.make_folder(target, os.stat(home))
    ledger = state.ledger(home)
    more = {e.path: e.after["sha256"] for e in entries if e.role == "file" and _makes(e)}
    left = remains.files(here, more) + remains.modes(here)
    if left:
        reason += "; taken away as well: %s" % ", ".join(left)
    written = receipt.set_aside(here, by, target, reason, ledger)
    # Before it is done: a stop in between is told twice then, not never.
    journal.append(home, len(ledger), state.dump(written))
    remains.remove(here, more, [e.path for e in entries if grafts.is_made(e)])
    # The journal goes first: stopped in between, nobody goes on with a part. State goes last.
    for part in (
        "journal.go",
        "journal",
        "journal.new",
        "stage",
        "originals",
        "patches.json",
        "state.json",
    ):
        if facts.exists(os.path.join(home, part)):
            os.rename(os.path.join(home, part), os.path.join(target, part))
    stage.sync(home)
    paths = [entry.path for entry in entries if entry.role == "file"]
    return {"outcome": "set aside", "paths": paths, "where": target, "removed": left}


def _makes(entry: Entry) -> bool:
    return bool(entry.before["kind"] == "absent" and entry.after["kind"] != "absent")


def told(request: Mapping[str, Any]) -> Dict[str, Any]:
    """Return who asks, from where and when, as a lock and a receipt tell it."""
    return {
        "who": str(request.get("who") or environment.user()),
        "whence": str(request.get("whence") or os.uname().nodename),
        "host": os.uname().nodename,
        "pid": os.getpid(),
        "since": scan.now(),
    }
