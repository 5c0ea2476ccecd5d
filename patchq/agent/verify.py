"""Everything that is asked before the first change: a clear error, nothing touched.

What was surveyed must still be there, every path must be replaceable, the new
text must compile, and the disk must have room. `no_installer` and `read_back` are
asked again around the renames.
"""

from __future__ import annotations

import os
import sys
from typing import Any, Dict, List, Mapping, Optional, Tuple

from patchq.agent import bytecode, facts, obstacles, scan, state
from patchq.agent.environment import Environment
from patchq.agent.facts import Facts, RefusalError
from patchq.agent.journal import Journal, matches
from patchq.agent.renames import Ground

# Room beyond the staged bytes themselves: journal, state, RECORD twice, receipts, folders.
_MARGIN = 1 << 20


def expected(here: Environment, request: Mapping[str, Any]) -> None:
    """Check that the environment is the one that the controller planned for."""
    if here.refusal is not None:
        raise here.refusal
    unfinished = state.interrupted(here.home)
    if unfinished is not None:
        raise RefusalError(
            "interrupted",
            "an earlier %s of this environment was interrupted" % unfinished["verb"],
            "its journal %s of %s is there" % (unfinished["id"], unfinished["since"]),
            "patchq recover",
        )
    reason = scan.orphaned(here)
    if reason is not None:
        raise RefusalError(
            "orphaned",
            "the recorded patches are gone from %s" % here.site,
            reason,
            "patchq recover",
        )
    assert here.installed is not None
    found = here.installed.to_json()
    wanted = request["expect"]
    there: Dict[str, Any] = {
        "dist_info": found["dist_info"],
        "record": found["record"],
        "generation": here.state["generation"] if here.state else 0,
    }
    for key, value in there.items():
        if wanted.get(key) != value:
            raise RefusalError(
                "changed",
                "%s changed since it was surveyed" % here.site,
                "expected %s %s, found %s" % (key, wanted.get(key), value),
                "run the command again",
            )


def befores(here: Environment, request: Mapping[str, Any]) -> Dict[str, Tuple[Facts, bytes]]:
    """Return what is at each path; it must be what was surveyed, and replaceable."""
    seen: Dict[str, Optional[str]] = {}
    found: Dict[str, Tuple[Facts, bytes]] = {}
    changed: List[str] = []
    for entry in request["entries"]:
        path = entry["path"]
        found[path] = facts.look(here.at(path))
        reason = obstacles.problem(here, path, found[path][0], seen)
        if reason is not None:
            raise RefusalError(
                "in-the-way",
                "%s cannot be replaced" % here.at(path),
                reason,
                "remove the cause, or leave this environment unpatched",
            )
        if found[path][0].wire() != entry["before"]:
            changed.append(path)
    if changed:
        first = request["entries"][[e["path"] for e in request["entries"]].index(changed[0])]
        raise RefusalError(
            "changed",
            "%d of %d files changed since they were surveyed: %s"
            % (len(changed), len(found), ", ".join(changed[:5])),
            "%s: expected %s, found %s"
            % (changed[0], first["before"], found[changed[0]][0].wire()),
            "run the command again",
        )
    for path in found:
        _stuck_bytecode(here, path)
    return found


def contents(here: Environment, request: Mapping[str, Any], blobs: Mapping[str, bytes]) -> None:
    """Check that all new bytes came along, and that new modules compile."""
    paths = [entry["path"] for entry in request["entries"]]
    if len(set(paths)) != len(paths):
        raise RefusalError("bad-request", "a path is named twice", repr(paths), "report a bug")
    for entry in request["entries"]:
        digest = entry["after"][2]
        if digest is not None and not entry.get("original") and digest not in blobs:
            raise RefusalError(
                "bad-request", "no content for %s" % entry["path"], digest, "report a bug"
            )
    for digest in request.get("patches") or ():
        if digest not in blobs and digest not in (state.patches(here.home) if here.state else ()):
            raise RefusalError("bad-request", "no text for a patch", digest, "report a bug")
    if request.get("compile"):
        for entry in request["entries"]:
            path, digest = entry["path"], entry["after"][2]
            if path.endswith(".py") and digest is not None and not entry.get("original"):
                _compiles(here, path, blobs[digest])


def room(here: Environment, request: Mapping[str, Any], blobs: Mapping[str, bytes]) -> None:
    """Check that the file system has room for every new file, twice, and some names."""
    have = os.statvfs(here.site)
    free = (have.f_bfree if os.geteuid() == 0 else have.f_bavail) * have.f_frsize
    need = 2 * sum(len(data) for data in blobs.values()) + _MARGIN
    names = 3 * len(request["entries"]) + 16
    if free < need or (have.f_files and have.f_favail < names):
        raise RefusalError(
            "no-space",
            "the file system of %s is full" % here.site,
            "%d bytes and %d names are needed, %d and %d are free"
            % (need, names, free, have.f_favail),
            "make room there",
        )


def no_installer(handle: int, ground: Ground, journal: Journal, renamed: bool) -> None:
    """Check that dist-info and RECORD are still those that the transaction started with.

    `handle`: the dist-info's folder, open since then; pip and uv share no lock with us.
    """
    folder, held = ground.site + "/" + journal.dist_info["name"], os.fstat(handle)
    same = os.path.lexists(folder) and held.st_nlink > 0
    same = same and os.path.samestat(held, os.stat(folder))
    for entry in journal.entries if same else ():
        if entry.role == "record":
            now = facts.look(ground.live(entry))[0].sha256
            same = now == (
                entry.after["sha256"] if renamed else entry.plus or entry.before["sha256"]
            )
    if not same:
        raise RefusalError(
            "installer",
            "an installer is at work on %s" % folder,
            "it was replaced, or its RECORD was, while patchq was at work",
            "wait for it, then run the command again",
        )


def read_back(ground: Ground, journal: Journal) -> None:
    """Check what is on the disk after the renames, before anything says that it is done."""
    for entry in journal.entries:
        live = ground.live(entry)
        if entry.role not in ("file", "record"):
            continue
        if not matches(facts.look(live)[0], entry.after):
            raise RefusalError(
                "read-back",
                "%s does not hold what was written" % live,
                "read back from the disk, its sha256 is not %s" % entry.after["sha256"],
                "look after the disk; the transaction was undone",
            )


def _compiles(here: Environment, path: str, data: bytes) -> None:
    failure = _failure(path, data)
    if failure is None:
        return
    before = facts.optional(here.at(path))
    if before is not None and _failure(path, before) is not None:
        return  # a template that never was a module: not the patch's fault
    line, text, message = failure
    raise RefusalError(
        "does-not-compile",
        "%s would not compile in this environment" % path,
        "Python %d.%d: %s at line %s: %s" % (*sys.version_info[:2], message, line, text),
        "correct the patch; nothing was changed",
    )


def _failure(name: str, data: bytes) -> Optional[Tuple[object, str, str]]:
    import warnings

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(data, "<%s>" % name, "exec", dont_inherit=True)
    except SyntaxError as error:
        # Not `error.text`: Python may read that from a file of the name.
        lines = data.split(b"\n")[: error.lineno or 0]
        return (
            error.lineno,
            lines[-1].decode("utf-8", "replace").strip() if lines else "",
            error.msg,
        )
    except (ValueError, OverflowError, RecursionError, MemoryError) as error:
        return "?", "", str(error)
    return None


def _stuck_bytecode(here: Environment, module: str) -> None:
    for path in bytecode.of(here.site, module):
        reason = bytecode.removable(here.site, path)
        if reason is not None and bytecode.unchecked(here.site, path):
            raise RefusalError(
                "in-the-way",
                "%s would be run instead of the patched module" % here.at(path),
                "it is unchecked-hash bytecode, and cannot be removed: %s" % reason,
                "remove it",
            )
