"""Originals that a commit gives back: the very inode, a copy, or bytes that are made anew.

Decides only; changes nothing.
"""

from __future__ import annotations

import os
from typing import Any, Dict, Mapping, Optional, Tuple

from patchq.agent import facts, journal, record, scan
from patchq.agent.draft import Draft
from patchq.agent.environment import Environment
from patchq.agent.facts import Facts, RefusalError

# What the journal says of a file.
DESCRIBED = ("kind", "sha256", "mode", "uid", "gid")


def first_record(here: Environment) -> bytes:
    """Return RECORD as it was before the first push."""
    name = here.state["dist_info"]["original"] if here.state else None
    if name is not None:
        return facts.read(here.home + "/originals/" + name)
    return (here.installed and here.installed.record) or b""


def untrue(first: bytes, path: str, kept: Mapping[str, Any]) -> bool:
    """Return whether RECORD was of what somebody had put there, not of the release's file."""
    if kept.get("kept") != "pristine":
        return False
    found, row = record.find(first, path), _row(path, kept)
    return (found is None) != (row is None) or (
        row is not None and record.digest(first, path) != kept["sha256"]
    )


def _row(path: str, kept: Mapping[str, Any]) -> Optional[bytes]:
    digest = kept["sha256"]
    return None if digest is None else record.row(path, digest, kept["size"])


def original(
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
    if untrue(first_record(here), path, kept):
        row = _row(path, kept)
    if kept["sha256"] is None:
        return journal.ABSENT, None, None, row
    after = {key: kept[key] for key in DESCRIBED}
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
    return dict({key: kept[key] for key in DESCRIBED}, kind="file", mode=mode)


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
