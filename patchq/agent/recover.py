"""Answer ``recover``: finish or undo what was interrupted."""

from __future__ import annotations

import os
from typing import Any, Dict, Mapping, Optional

from patchq.agent import environment, facts, journal, lock, protocol, renames, scan, stage
from patchq.agent.facts import RefusalError
from patchq.agent.journal import Journal
from patchq.agent.renames import Ground


def recover(request: Mapping[str, Any]) -> Dict[str, Any]:
    """Finish or undo what was interrupted; set aside what lost its distribution."""
    here = environment.locate(dict(request, paths=[]))
    ground = Ground(here.site, here.home)
    if not os.path.isdir(here.home):
        return {"outcome": "nothing", "paths": []}
    if here.refusal is not None and here.refusal.word == "not-writable":
        raise here.refusal
    with lock.Lock(here.home, _who(request)):
        found = journal.load(here.home)
        if found is None:
            journal.remove(os.path.join(here.home, "journal.new"))
            if scan.orphaned(here) is not None:
                return _set_aside(ground, str((here.state or {}).get("generation", 0)), ())
            renames.clear_stage(ground)
            return {"outcome": "nothing", "paths": []}
        paths = [entry.path for entry in found.entries if entry.role == "file"]
        if journal.finished(here.home):
            renames.settle(ground, found)
            return {"outcome": "finished", "paths": paths}
        force = request.get("force")
        if force is None and _lost(ground, found):
            return _set_aside(ground, found.id, paths)
        return {"outcome": _resume(ground, found, force), "paths": paths}


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


def _lost(ground: Ground, found: Journal) -> bool:
    """Return whether the dist-info is not the one that the transaction was made for."""
    folder = os.path.join(ground.site, found.dist_info["name"])
    metadata = facts.optional(os.path.join(folder, "METADATA"), follow=True)
    digest = None if metadata is None else protocol.sha256(metadata)
    if not os.path.isdir(folder) or digest != found.dist_info["metadata"]:
        return True
    info = os.stat(folder)
    if [info.st_dev, info.st_ino] == list(found.dist_info["inode"]):
        return False
    return any(e.role == "record" and not renames.is_ours(ground, e) for e in found.entries)


def _set_aside(ground: Ground, name: str, paths: Any) -> Dict[str, Any]:
    """Move journal, state and originals where nothing reads them; the ledger stays."""
    lock.make_folder(ground.home + "/aside", os.stat(ground.home))
    target = ground.home + "/aside/" + name
    number = 0
    while os.path.lexists(target):
        number += 1
        target = "%s/aside/%s.%d" % (ground.home, name, number)
    lock.make_folder(target, os.stat(ground.home))
    for part in (
        "stage",
        "originals",
        "patches.json",
        "state.json",
        "journal.new",
        "journal",
        "journal.go",
    ):
        if os.path.lexists(os.path.join(ground.home, part)):
            os.rename(os.path.join(ground.home, part), os.path.join(target, part))
    stage.sync(ground.home)
    return {"outcome": "set aside", "paths": list(paths), "where": target}


def _who(request: Mapping[str, Any]) -> Dict[str, Any]:
    return {
        "who": request.get("who") or environment.user(),
        "host": os.uname().nodename,
        "pid": os.getpid(),
        "since": scan.now(),
    }
