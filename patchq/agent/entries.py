"""The entries of a transaction, path by path.

Decides which inode is kept and which is given back, which mode and owner a new
file gets, and which compiled files go or come back. Changes nothing.
"""

from __future__ import annotations

import os
from typing import Any, Dict, List, Mapping, Optional

from patchq.agent import bytecode, facts, given, journal, record, stage
from patchq.agent.draft import Draft
from patchq.agent.environment import Environment
from patchq.agent.facts import Facts


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
        after, gives, data, row = given.original(draft, entry, blobs, fresh)
        draft.rows[path] = row
        del draft.originals[path]
        if data is not None:
            draft.contents[path] = data
        draft.add(path=path, role="file", before=before, after=after, gives=gives)
        return
    _, executable, digest = entry["after"]
    if entry.get("restore"):
        _restored(draft, path, before, executable, digest, blobs)
        return
    keep = _keep(draft, entry, found, blobs)
    if digest is None:
        draft.rows[path] = None
        draft.add(path=path, role="file", before=before, after=journal.ABSENT, keep=keep)
        return
    if entry.get("adopt") and draft.originals[path]["sha256"] is None:
        _made_folders(draft, path)
    draft.rows[path] = record.row(path, digest, len(blobs[digest]))
    after = dict(_like(draft, path, found, executable), kind="file", sha256=digest)
    rests = stays(entry, found)
    if not rests:
        draft.contents[path] = blobs[digest]
    draft.add(path=path, role="file", before=before, after=after, keep=keep, stays=rests)


def _restored(
    draft: Draft,
    path: str,
    before: Mapping[str, Any],
    executable: bool,
    digest: Optional[str],
    blobs: Mapping[str, bytes],
) -> None:
    """Add the entry of a file that no patch has and that is the release's again.

    Nothing is kept of what somebody had put there, and RECORD speaks of the release already.
    """
    after = journal.ABSENT
    if digest is not None:
        draft.contents[path] = blobs[digest]
        if before["kind"] == "absent":
            mode, uid, gid = stage.created(_nearest(draft.here, path), executable)
        else:
            mode, uid, gid = before["mode"], before["uid"], before["gid"]
        mode = stage.with_execution(mode, executable)
        after = {"kind": "file", "sha256": digest, "mode": mode, "uid": uid, "gid": gid}
    draft.add(path=path, role="file", before=before, after=after)


def stays(entry: Mapping[str, Any], found: Facts) -> bool:
    """Return whether the very file that is there is to be what the request wants.

    ``detach`` wants the same bytes in a file of their own, to be edited: the one that was
    there may be linked into a cache, and is kept as the original. One that is to be adopted
    stays where nothing else has its inode.
    """
    if entry["before"] != entry["after"] or any(map(entry.get, ("detach", "original"))):
        return False
    return found.sha256 is None or (found.kind == "file" and found.links == 1)


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
            after = {key: kept[key] for key in given.DESCRIBED}
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


def _made_folders(draft: Draft, path: str) -> None:
    """Note the folders that somebody made for a new file: they go with it.

    Those that the release has are in its RECORD; of a tree without one nobody can tell.
    """
    release = b"\n" + given.first_record(draft.here)
    folder, made = os.path.dirname(path), []
    while len(release) > 1 and folder:
        start = os.fsencode(folder) + b"/"
        if folder in draft.folders or b"\n" + start in release or b'\n"' + start in release:
            break
        made.append(folder)
        folder = os.path.dirname(folder)
    draft.folders += reversed(made)


def old_folders(draft: Draft) -> None:
    """Add the folders that patchq made and that no created file needs any more."""
    for folder in list(draft.folders):
        if not any(path.startswith(folder + "/") for path in draft.originals):
            draft.folders.remove(folder)
            before = journal.describe(facts.look(draft.here.at(folder))[0])
            if before["kind"] == "folder":
                draft.add(path=folder, role="folder", before=before, after=journal.ABSENT)


def _keep(
    draft: Draft, entry: Mapping[str, Any], found: Facts, blobs: Mapping[str, bytes]
) -> Optional[str]:
    """Note what a path is before its first patch; return the name that its file is kept by."""
    path = entry["path"]
    if path in draft.originals:
        return None
    if entry.get("pristine"):
        return _pristine(draft, entry, found, blobs)
    keep = draft.name() if found.kind != "absent" else None
    draft.originals[path] = {
        **journal.describe(found),
        "executable": found.executable,
        "mtime_ns": found.mtime_ns,
        "size": found.size,
        "name": keep,
    }
    return keep


def _pristine(
    draft: Draft, entry: Mapping[str, Any], found: Facts, blobs: Mapping[str, bytes]
) -> Optional[str]:
    """Note what a path was before somebody edited, made or removed its file by hand."""
    path, (_, executable, digest) = entry["path"], entry["pristine"]
    kept = dict(journal.ABSENT, executable=False, mtime_ns=0, size=0, name=None)
    if digest is not None:
        draft.pristine[path] = blobs[digest]
        if found.kind == "absent":
            mode, uid, gid = stage.created(_nearest(draft.here, path), executable)
        else:
            mode, uid, gid = found.mode, found.uid, found.gid
        kept.update(
            kind="file",
            sha256=digest,
            executable=executable,
            mode=stage.with_execution(mode, executable),
            uid=uid,
            gid=gid,
            mtime_ns=found.mtime_ns,
            size=len(blobs[digest]),
            name=draft.name(),
        )
    draft.originals[path] = dict(kept, kept="pristine")
    name: Optional[str] = kept["name"]
    return name


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
