"""The journal of one transaction: ``journal`` and ``journal.go``, format 1.

It is written, fsynced and renamed into place before anything else changes, and
names everything that the transaction will make or replace. One JSON document::

    {"schema": 1, "id", "verb", "since", "who", "generation": of the state before,
     "dist_info": {"name", "metadata": sha256, "inode": [device, number]},
     "ledger": bytes that ledger.jsonl had,
     "modules": [touched .py paths, whose compiled files go],
     "drop": [names in originals/ that nobody needs after it],
     "entries": [entry, ...] in the order of the renames}

An entry is ``{"path", "role", "before", "after", "new", "old", "keep", "gives",
"plus"}``: ``role`` is folder, file, bytecode, record or own (state.json,
patches.json); ``before`` and ``after`` are ``{"kind", "sha256", "mode", "uid",
"gid"}``; ``new`` and ``old`` are names in stage/ (the staged file, the second name
of what is replaced); ``keep`` is the name in originals/ that ``old`` gets at the
end, ``gives`` the one whose inode ``new`` is, ``plus`` the sha256 of RECORD with
the rows that were added first.

The states of a transaction:

* ``journal`` alone: not decided; recovery undoes.
* ``journal`` and ``journal.go`` (a second name of it): decided; recovery goes on.
* ``journal.go`` alone: done; only second names and the mark itself are left to go.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Tuple

from patchq.agent import facts, forms, lock, protocol, stage, state
from patchq.agent.facts import Facts

ABSENT: Mapping[str, Any] = {"kind": "absent", "sha256": None, "mode": 0, "uid": 0, "gid": 0}


class Entry(NamedTuple):
    """One name that the transaction changes; see the module's docstring."""

    path: str
    role: str
    before: Mapping[str, Any]
    after: Mapping[str, Any]
    new: Optional[str] = None
    old: Optional[str] = None
    keep: Optional[str] = None
    gives: Optional[str] = None
    plus: Optional[str] = None


class Journal(NamedTuple):
    """One transaction as its journal names it."""

    id: str
    verb: str
    since: str
    who: str
    generation: int
    dist_info: Mapping[str, Any]
    ledger: int
    modules: Tuple[str, ...]
    drop: Tuple[str, ...]
    entries: Tuple[Entry, ...]


def describe(found: Facts) -> Dict[str, Any]:
    """Return what an entry says of a path."""
    return {
        "kind": found.kind,
        "sha256": found.sha256,
        "mode": found.mode,
        "uid": found.uid,
        "gid": found.gid,
    }


def is_of(found: Facts, entry: Entry) -> bool:
    """Return whether a path is as it was, or as it shall be."""
    return matches(found, entry.before) or matches(found, entry.after)


def is_apart(entry: Entry, second: Facts) -> bool:
    """Return whether a second name is of an edited file's original, and the edit is live.

    Such an original was written beside it; the edit only gets an inode of its own.
    """
    same = entry.role == "file" and entry.before["sha256"] == entry.after["sha256"]
    return same and entry.keep is not None and second.sha256 != entry.before["sha256"]


def matches(found: Facts, wanted: Mapping[str, Any]) -> bool:
    """Return whether a path is as an entry says: kind, contents and executable bit."""
    if found.kind != wanted["kind"] or found.sha256 != wanted["sha256"]:
        return False
    return found.sha256 is None or found.executable == bool(wanted["mode"] & 0o100)


def load(home: str) -> Optional[Journal]:
    """Return the journal of an unfinished transaction, None where there is none."""
    for name in ("journal", "journal.go"):
        path = os.path.join(home, name)
        data = facts.optional(path)
        if data is not None:
            found = state.parse(path, data, forms.JOURNAL)
            entries = [Entry(*map(entry.get, Entry._fields)) for entry in found["entries"]]
            _check(path, entries, found["dist_info"]["name"])
            values: Dict[str, Any] = {key: found[key] for key in Journal._fields}
            values.update({key: tuple(found[key]) for key in ("modules", "drop")})
            return Journal(**dict(values, entries=tuple(entries)))
    return None


def _check(path: str, entries: List[Entry], dist_info: str) -> None:
    """Refuse a journal that names what no transaction of ours would touch."""
    home = os.path.dirname(path)
    own = "/".join(home.split("/")[-2:])
    for entry in entries:
        folder, _, name = entry.path.rpartition("/")
        if entry.role == "own":
            fine = folder == own and name in ("state.json", "patches.json")
        elif entry.role == "record":
            fine = folder == dist_info and name == "RECORD"
        else:
            fine = protocol.unsafe(entry.path) is None
        if not fine:
            raise state.damaged(path, "it names %.80r" % entry.path)


def write(home: str, journal: Journal) -> None:
    """Put the journal in place, durably: from here on a crash is recovered."""
    document = dict(journal._asdict(), schema=state.SCHEMA)
    document["entries"] = [entry._asdict() for entry in journal.entries]
    draft = os.path.join(home, "journal.new")
    handle = lock.own_file(home, draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    with facts.opened(draft, handle):
        write_all(handle, json.dumps(document, separators=(",", ":")).encode())
        os.fsync(handle)
    os.rename(draft, os.path.join(home, "journal"))
    stage.sync(home)


def decided(home: str) -> bool:
    """Return whether the transaction passed its commit point."""
    return facts.exists(os.path.join(home, "journal.go"))


def finished(home: str) -> bool:
    """Return whether all is done but the clearing up."""
    return decided(home) and not facts.exists(os.path.join(home, "journal"))


def go(home: str) -> None:
    """Decide: the commit point is the one name ``journal.go``."""
    mark = os.path.join(home, "journal.go")
    try:
        os.link(os.path.join(home, "journal"), mark)
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS):
            raise
        # No links on this file system: a copy that appears whole does the same.
        draft = os.path.join(home, "stage", "journal.go")
        remove(draft)
        stage.copy(os.path.join(home, "journal"), draft)
        os.rename(draft, mark)
    stage.sync(home)


def revoke(home: str) -> None:
    """Take the decision back; what follows is an undo."""
    remove(os.path.join(home, "journal.go"))
    stage.sync(home)


def finish(home: str) -> None:
    """Say that all names are in place: only clearing up is left."""
    remove(os.path.join(home, "journal"))
    stage.sync(home)


def append(home: str, size: int, line: bytes) -> None:
    """Put a receipt at `size` bytes of the ledger; doing it twice is doing it once."""
    path = os.path.join(home, "ledger.jsonl")
    handle = lock.own_file(home, path)
    with facts.opened(path, handle):
        os.ftruncate(handle, size)
        os.lseek(handle, size, os.SEEK_SET)
        write_all(handle, line)
        os.fsync(handle)


def cut(home: str, size: int) -> None:
    """Take a receipt that must not stay from the ledger."""
    path = os.path.join(home, "ledger.jsonl")
    found = facts.status(path)
    if found is not None and (found.st_size > size or not size):
        if size:
            os.truncate(path, size)
            stage.sync(path)
        else:
            os.unlink(path)


def remove(path: str) -> None:
    """Remove a name that may be gone already."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


def names(folder: str) -> List[str]:
    """Return the names in a folder of the state, none where it is absent."""
    try:
        return sorted(os.listdir(folder))
    except FileNotFoundError:
        return []


def write_all(handle: int, data: bytes) -> None:
    """Write all bytes to a descriptor; write(2) may take fewer at a time."""
    at = 0
    while at < len(data):
        at += os.write(handle, data[at:])
