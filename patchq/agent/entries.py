"""The entries of a transaction, path by path.

Decides which inode is kept and which is given back, which mode and owner a new
file gets, and which compiled files go or come back. Changes nothing.
"""

from __future__ import annotations

import os
from typing import Any, Dict, List, Mapping, Optional, Tuple

from patchq.agent import bytecode, facts, journal, record, scan, stage
from patchq.agent.environment import Environment
from patchq.agent.facts import Facts, RefusalError
from patchq.agent.journal import Entry

_DESCRIBED = ("kind", "sha256", "mode", "uid", "gid")


class Draft:
    """Collects entries while the paths are gone through."""

    def __init__(self, here: Environment, request: Mapping[str, Any]) -> None:
        self.here = here
        self.request = request
        kept = here.state or {}
        self.generation = kept.get("generation", 0) + 1
        self.originals: Dict[str, Any] = dict(kept.get("originals", {}))
        self.bytecode: Dict[str, Any] = dict(kept.get("bytecode", {}))
        self.folders: List[str] = list(kept.get("folders", ()))
        self.entries: List[Entry] = []
        self.contents: Dict[str, bytes] = {}
        self.pristine: Dict[str, bytes] = {}
        self.mtimes: Dict[str, int] = {}
        self.copied: Dict[str, Optional[str]] = {}
        self.rows: Dict[str, Optional[bytes]] = {}
        self.drop: List[str] = []
        self.notes: List[str] = []

    def name(self) -> str:
        """Return a name in originals/ for the entry that is added next."""
        return "%d-%d" % (self.generation, len(self.entries))

    def add(self, **fields: Any) -> None:
        """Add an entry; its names in stage/ are its number's."""
        number = len(self.entries)
        if fields["after"]["kind"] != "absent" and not fields.pop("stays", False):
            fields["new"] = "%d.new" % number
        if fields["before"]["kind"] not in ("absent", "folder"):
            fields["old"] = "%d.old" % number
        self.entries.append(Entry(**fields))


def file(
    draft: Draft,
    entry: Mapping[str, Any],
    found: Facts,
    blobs: Mapping[str, bytes],
    fresh: Optional[str],
) -> None:
    """Add the entry of one path of the request, its row and the bytes to stage."""
    path, before = entry["path"], journal.describe(found)
    if entry.get("original"):
        after, gives, data, row = _original(draft, entry, blobs, fresh)
        draft.rows[path] = row
        del draft.originals[path]
        if data is not None:
            draft.contents[path] = data
        draft.add(path=path, role="file", before=before, after=after, gives=gives)
        return
    keep = _keep(draft, entry, found, blobs)
    _, executable, digest = entry["after"]
    if digest is None:
        draft.rows[path] = None
        draft.add(path=path, role="file", before=before, after=journal.ABSENT, keep=keep)
        return
    draft.rows[path] = record.row(path, digest, len(blobs[digest]))
    after = dict(_like(draft, path, found, executable), kind="file", sha256=digest)
    stays = entry["before"] == entry["after"]
    if not stays:
        draft.contents[path] = blobs[digest]
    draft.add(path=path, role="file", before=before, after=after, keep=keep, stays=stays)


def compiled(draft: Draft, module: str, fresh: Optional[str]) -> None:
    """Keep the compiled files that RECORD lists, or give them back with their module."""
    here, listed = draft.here, (draft.here.installed and draft.here.installed.record) or b""
    back = module not in draft.originals
    first = draft.originals.get(module) or (here.state or {"originals": {}})["originals"][module]
    created = first["sha256"] is None
    for path, kept in list(draft.bytecode.items()):
        if back and kept["module"] == module:
            del draft.bytecode[path]
            if fresh is not None and not created:
                draft.drop.append(kept["name"])
                continue
            after = {key: kept[key] for key in _DESCRIBED}
            there = facts.look(here.home + "/originals/" + kept["name"])[0]
            if journal.describe(there) != after:
                draft.drop.append(kept["name"])
                draft.notes.append("%s: the kept one is another now, it stays away" % path)
                continue
            before = journal.describe(facts.look(here.at(path))[0])
            draft.add(path=path, role="bytecode", before=before, after=after, gives=kept["name"])
    if back:
        return
    for path in bytecode.of(here.site, module):
        found = facts.look(here.at(path))[0]
        # Where a patch brings the source, such a file beside it is the module that was there.
        mine = created and not bytecode.is_cached(path)
        mine = mine or record.find(listed, path) is not None
        if path in draft.bytecode or not mine or found.kind != "file":
            continue
        if bytecode.removable(here.site, path) is None:
            before, keep = journal.describe(found), draft.name()
            draft.bytecode[path] = dict(before, module=module, name=keep)
            draft.add(path=path, role="bytecode", before=before, after=journal.ABSENT, keep=keep)


def new_folders(draft: Draft, paths: List[str]) -> None:
    """Add the folders that files to be created need, the outer ones first."""
    for path in paths:
        missing = []
        folder = os.path.dirname(path)
        while folder and not facts.exists(draft.here.at(folder)):
            missing.append(folder)
            folder = os.path.dirname(folder)
        for name in reversed(missing):
            if all(entry.path != name for entry in draft.entries):
                like = os.stat(draft.here.at(folder) if folder else draft.here.site)
                after = {
                    "kind": "folder",
                    "sha256": None,
                    "mode": like.st_mode & 0o7777,
                    "uid": like.st_uid,
                    "gid": like.st_gid,
                }
                draft.folders.append(name)
                draft.add(path=name, role="folder", before=journal.ABSENT, after=after)


def old_folders(draft: Draft) -> None:
    """Add the folders that patchq made and that no created file needs any more."""
    for folder in list(draft.folders):
        if not any(path.startswith(folder + "/") for path in draft.originals):
            draft.folders.remove(folder)
            before = journal.describe(facts.look(draft.here.at(folder))[0])
            if before["kind"] == "folder":
                draft.add(path=folder, role="folder", before=before, after=journal.ABSENT)


def first_record(here: Environment) -> bytes:
    """Return RECORD as it was before the first push."""
    name = here.state["dist_info"]["original"] if here.state else None
    if name is not None:
        return facts.read(here.home + "/originals/" + name)
    return (here.installed and here.installed.record) or b""


def _keep(
    draft: Draft, entry: Mapping[str, Any], found: Facts, blobs: Mapping[str, bytes]
) -> Optional[str]:
    """Note what a path is before its first patch; return the name that its file is kept by."""
    path = entry["path"]
    if path in draft.originals:
        return None
    keep = draft.name() if found.kind != "absent" else None
    draft.originals[path] = {
        **journal.describe(found),
        "executable": found.executable,
        "mtime_ns": found.mtime_ns,
        "size": found.size,
        "name": keep,
    }
    if entry.get("pristine"):
        _, executable, digest = entry["pristine"]
        draft.pristine[path] = blobs[digest]
        draft.originals[path].update(
            kind="file",
            sha256=digest,
            executable=executable,
            mode=stage.with_execution(found.mode, executable),
            size=len(blobs[digest]),
        )
    return keep


def _original(
    draft: Draft, entry: Mapping[str, Any], blobs: Mapping[str, bytes], fresh: Optional[str]
) -> Tuple[Mapping[str, Any], Optional[str], Optional[bytes], Optional[bytes]]:
    """Return after-state, store name, replacement bytes and RECORD row of a file given back."""
    path, here = entry["path"], draft.here
    kept = draft.originals.get(path)
    wanted = scan.first_state(here, path)
    if kept is None or wanted != entry["after"]:
        raise RefusalError(
            "changed",
            "the original of %s is not the one that was asked for" % path,
            "expected %s, kept is %s" % (entry["after"], wanted),
            "run the command again",
        )
    row = record.find(first_record(here), path)
    if kept["sha256"] is None:
        return journal.ABSENT, None, None, row
    after = {key: kept[key] for key in _DESCRIBED}
    there, data = scan.kept(here, path)
    if there.sha256 == kept["sha256"]:
        whole = journal.describe(there) == after
        if there.kind == "link":
            if not whole:
                draft.notes.append("%s: what the link leads to has another mode or owner" % path)
            return journal.describe(there), kept["name"], None, row
        whole = whole and there.mtime_ns == kept["mtime_ns"]
        if whole and fresh is None:
            return after, kept["name"], None, row
        draft.drop.append(kept["name"])
        draft.copied[path] = kept["name"]
        if not whole:
            after = _again(draft, path, kept, there)
        return after, None, data, row
    if there.kind == "link" and _comes_back(draft, path, kept):
        return after, kept["name"], None, row
    return dict(after, kind="file"), None, _anew(draft, path, kept, blobs), row


def _anew(draft: Draft, path: str, kept: Mapping[str, Any], blobs: Mapping[str, bytes]) -> bytes:
    """Return the bytes of an original that is lost, as they came with the request."""
    if kept["sha256"] not in blobs:
        raise RefusalError(
            "original-damaged",
            "the kept original of %s is damaged" % path,
            "%s/originals/%s does not hold (or no longer leads to) sha256 %s"
            % (draft.here.home, kept["name"], kept["sha256"]),
            "patchq pop -a   # makes it anew from the patched file and its patches",
        )
    if kept["name"] is not None:
        draft.drop.append(kept["name"])
    draft.copied[path] = None
    draft.notes.append("%s: the kept original was damaged, pristine bytes were written" % path)
    return blobs[kept["sha256"]]


def _again(draft: Draft, path: str, kept: Mapping[str, Any], there: Facts) -> Dict[str, Any]:
    """Return the after-state of a copy, where the kept inode is not as it was recorded.

    A file that an installer linked into many places has one mode for all of them.
    """
    draft.mtimes[path] = kept["mtime_ns"]
    draft.notes.append(
        "%s: mode, owner or time of the kept original changed meanwhile, a copy was given back"
        % path
    )
    owned = (there.uid, there.gid) == (kept["uid"], kept["gid"])
    # Nobody gets a set-uid file of a new owner by editing the record.
    mode = kept["mode"] if owned else kept["mode"] & 0o777
    return dict({key: kept[key] for key in _DESCRIBED}, kind="file", mode=mode)


def _comes_back(draft: Draft, path: str, kept: Mapping[str, Any]) -> bool:
    """Return whether a kept link leads to a file that gets its bytes back, too."""
    here = draft.here
    link = os.readlink(here.home + "/originals/" + kept["name"])
    full = os.path.realpath(os.path.join(os.path.dirname(here.at(path)), link))
    return any(
        entry["after"][2] == kept["sha256"] and os.path.realpath(here.at(entry["path"])) == full
        for entry in draft.request["entries"]
        if entry.get("original") and entry["path"] != path
    )


def _like(draft: Draft, path: str, found: Facts, executable: bool) -> Dict[str, Any]:
    """Return mode, owner and group of a new file: the old one's, or what its folder gives."""
    kept = draft.originals[path]
    if found.kind != "absent":
        mode = stage.with_execution(found.mode, executable)
        return {"mode": mode, "uid": found.uid, "gid": found.gid}
    if kept["sha256"] is not None:
        mode = stage.with_execution(kept["mode"], executable)
        return {"mode": mode, "uid": kept["uid"], "gid": kept["gid"]}
    mode, uid, gid = stage.created(_nearest(draft.here, path), executable)
    return {"mode": mode, "uid": uid, "gid": gid}


def _nearest(here: Environment, path: str) -> str:
    folder = os.path.dirname(path)
    while folder and not facts.is_folder(here.at(folder)):
        folder = os.path.dirname(folder)
    return here.at(folder) if folder else here.site
