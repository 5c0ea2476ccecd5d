"""What a commit comes to: the journal's entries, RECORD, and the state that will be.

Reads the environment, changes nothing.
"""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Tuple

from patchq.agent import bytecode, entries, facts, given, journal, protocol, record, state
from patchq.agent.draft import Draft
from patchq.agent.environment import Environment
from patchq.agent.facts import Facts, RefusalError
from patchq.agent.journal import Entry

Look = Tuple[Facts, bytes]


class Changes(NamedTuple):
    """The entries, the next state (None: nothing is left applied), and their bytes.

    `contents` maps a path to the bytes of its staged file; one without is made
    from what `gives` names. `mtimes` (nanoseconds) has those of originals that are given
    back as a copy; `copied` the names in originals/ of all these, whose attributes they
    get, None where the original is lost. `record_plus`: RECORD with the rows that come first.
    """

    entries: List[Entry]
    state: Optional[Dict[str, Any]]
    contents: Dict[str, bytes]
    pristine: Dict[str, bytes]
    mtimes: Dict[str, int]
    copied: Dict[str, Optional[str]]
    record_plus: Optional[bytes]
    modules: List[str]
    drop: List[str]
    fresh: Optional[str]
    notes: List[str]


def plan(
    here: Environment,
    request: Mapping[str, Any],
    found: Mapping[str, Look],
    blobs: Mapping[str, bytes],
) -> Changes:
    """Return what the commit will do; created first, then changed, then deleted."""
    draft = Draft(here, request)
    wanted = [e for e in request["entries"] if _does(draft, e)]
    deleted = [e for e in wanted if e["after"][2] is None]
    created = [e for e in wanted if e["before"][2] is None and e not in deleted]
    changed = [e for e in wanted if e not in created and e not in deleted]
    back = [e["path"] for e in wanted if e.get("original")]
    fresh = bytecode.elsewhere(here.site, back) if back else None
    entries.new_folders(draft, [e["path"] for e in created])
    for entry in created + changed + deleted:
        entries.file(draft, entry, found[entry["path"]][0], blobs, fresh)
    modules = [e["path"] for e in wanted if e["path"].endswith(".py")]
    loose = [e["path"] for e in wanted if e.get("restore")]
    for module in modules:
        if module not in loose:
            entries.compiled(draft, module, fresh)
    entries.old_folders(draft)
    if not request["stack"] and draft.originals:
        left = ", ".join(draft.originals)
        raise RefusalError(
            "bad-request", "an empty stack would leave files changed", left, "report a bug"
        )
    written, plus = _record(draft)
    if fresh is not None:
        draft.notes.append("new mtimes were given, since %s" % fresh)
    return Changes(
        draft.entries,
        _state(draft, written) if request["stack"] else None,
        draft.contents,
        draft.pristine,
        {} if fresh is not None else draft.mtimes,
        draft.copied,
        plus,
        modules,
        draft.drop,
        fresh,
        draft.notes,
    )


def own(here: Environment, planned: Changes) -> Tuple[Entry, ...]:
    """Return the entries of what patchq itself keeps, which come last."""
    there = dict(journal.ABSENT, kind="file")
    kept = planned.state is not None
    return tuple(
        Entry(
            state.home(here.distribution) + "/" + name,
            "own",
            there if facts.exists(here.home + "/" + name) else journal.ABSENT,
            there if kept else journal.ABSENT,
            new=name if kept else None,
            old=name + ".old" if facts.exists(here.home + "/" + name) else None,
        )
        for name in ("patches.json", "state.json")
    )


def _does(draft: Draft, entry: Mapping[str, Any]) -> bool:
    """Return whether an entry of the request moves a file.

    An original is given back even where a later patch made the same bytes of it: time and
    inode are its own. One that was absent and is absent has only to be forgotten, and of
    patches that were pushed together and undo each other none was ever taken.
    """
    path = entry["path"]
    if entry["before"] != entry["after"] or any(map(entry.get, ("pristine", "adopt", "detach"))):
        return True
    if entry.get("original") and entry["after"][2] is None:
        draft.originals.pop(path, None)
        return False
    return bool(entry.get("original")) and path in draft.originals


def _record(draft: Draft) -> Tuple[Optional[bytes], Optional[bytes]]:
    """Add RECORD's entry; return RECORD as it will be, and with the rows that come first."""
    here = draft.here
    assert here.installed is not None
    now = here.installed.record
    if now is None:
        return None, None
    path = here.installed.folder + "/RECORD"
    before = journal.describe(facts.look(here.at(path))[0])
    kept = here.state["dist_info"] if here.state else None
    if kept is None and not draft.request["stack"]:
        return now, None  # no patch was on, and none will be
    untouched = kept is not None and kept["record"] == protocol.sha256(now)
    if kept is not None and not untouched:
        draft.notes.append("RECORD was changed by another tool; only patchq's rows were changed")
    gives, after = None, record.update(now, draft.rows)
    if not draft.request["stack"] and kept is not None:
        first = given.first_record(here)
        if untouched and _true(here, first) and protocol.sha256(first) == kept["record_before"]:
            after, gives = first, _whole_record(here, kept["original"], before)
        if gives is None:
            draft.drop.append(kept["original"])
    added = {
        entry.path: record.row(entry.path)
        for entry in draft.entries
        if entry.role == "file"
        and entry.before["kind"] == "absent" != entry.after["kind"]
        and record.find(now, entry.path) is None
    }
    plus = record.update(now, added) if added else None
    if after == now and plus is None and gives is None and kept is not None:
        return now, None
    draft.add(
        path=path,
        role="record",
        before=before,
        after=dict(before, sha256=protocol.sha256(after)),
        keep=None if kept else draft.name(),
        gives=gives,
        plus=protocol.sha256(plus) if plus is not None else None,
    )
    if gives is None:
        draft.contents[path] = after
    return after, plus


def _true(here: Environment, first: bytes) -> bool:
    """Return whether RECORD was of the release before the first push, not of edits by hand."""
    kept = here.state["originals"] if here.state else {}
    return not any(given.untrue(first, path, one) for path, one in kept.items())


def _whole_record(here: Environment, name: str, now: Mapping[str, Any]) -> Optional[str]:
    """Return the name of RECORD's own inode, None where its mode or owner is another now."""
    there = journal.describe(facts.look(here.home + "/originals/" + name)[0])
    return name if there == dict(now, sha256=there["sha256"]) else None


def _state(draft: Draft, written: Optional[bytes]) -> Dict[str, Any]:
    here, request = draft.here, draft.request
    assert here.installed is not None
    kept = here.state["dist_info"] if here.state else None
    original = next((e.keep for e in draft.entries if e.role == "record"), None)
    before = here.installed.record
    digest = None if written is None else protocol.sha256(written)
    first = None if before is None else protocol.sha256(before)
    return {
        "schema": state.SCHEMA,
        "distribution": here.distribution,
        "environment": here.state["environment"] if here.state else None,
        "generation": draft.generation,
        "dist_info": {
            "name": here.installed.folder,
            "version": here.installed.version,
            "metadata": here.installed.metadata,
            "record": digest,
            "record_before": kept["record_before"] if kept else first,
            "original": kept["original"] if kept else original,
        },
        "stack": list(request["stack"]),
        "originals": draft.originals,
        "bytecode": draft.bytecode,
        "folders": draft.folders,
    }
