"""Everything that is asked before the first change: a clear error, nothing touched.

What was surveyed must still be there, every path must be replaceable, the new
text must compile, and the disk must have room. `no_installer` and `read_back` are
asked again around the renames.
"""

from __future__ import annotations

import os
import sys
from typing import Any, Dict, Iterable, List, Mapping, Optional, Tuple

from patchq.agent import bytecode, facts, forms, obstacles, scan, state
from patchq.agent.environment import Environment
from patchq.agent.facts import Facts, RefusalError
from patchq.agent.journal import Entry, Journal, matches
from patchq.agent.renames import Ground

# Room beyond the staged bytes themselves: journal, state, RECORD twice, receipts, folders.
_MARGIN = 1 << 20


def form(request: Mapping[str, Any]) -> None:
    """Check that what a request says can be written down, and be read again."""
    reason = forms.lossless(request) or forms.COMMIT(request)
    if reason is not None:
        raise _bad(reason)
    if "id" in request:
        identity(request)


def identity(request: Mapping[str, Any]) -> None:
    """Check the id by which a request names its commit."""
    reason = forms.record(id=forms.name, receipt=forms.record())(request)
    if reason is not None:
        raise _bad(reason)


def _bad(reason: str) -> RefusalError:
    return RefusalError("bad-request", "this is no request", reason, "report a bug")


def same_as_surveyed(here: Environment) -> None:
    """Check that nobody committed between finding the environment and the lock."""
    if scan.moved(here):
        raise RefusalError(
            "changed",
            "%s changed since it was surveyed" % here.site,
            "another patchq or an installer was faster",
            "run the command again",
        )


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
    for entry in request["entries"]:
        _stuck_bytecode(here, entry["path"], entry["after"][2] is None)
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
    kept = state.patches(here.home) if here.state and request.get("patches") else {}
    for digest in request.get("patches") or ():
        if digest not in blobs and digest not in kept:
            if any(patch["sha256"] == digest for patch in (here.state or {}).get("stack", ())):
                raise state.damaged(here.home + "/patches.json", "it has no text %s" % digest)
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
    if (have.f_blocks and free < need) or (have.f_files and have.f_favail < names):
        raise RefusalError(
            "no-space",
            "the file system of %s is full" % here.site,
            "%d bytes and %d names are needed, %d and %d are free"
            % (need, names, free, have.f_favail),
            "make room there",
        )


def second_name(name: str, entry: Entry) -> None:
    """Check that what just got a second name is what was surveyed: its inode is looked at."""
    if entry.role not in ("file", "record") or entry.before["kind"] != "file":
        return
    if not matches(facts.look(name)[0], entry.before):
        raise RefusalError(
            "changed",
            "%s changed while patchq was at work" % entry.path,
            "it is not what was surveyed any more",
            "run the command again",
        )


def no_installer(handle: int, ground: Ground, journal: Journal, renamed: bool) -> None:
    """Check that dist-info and RECORD are still those that the transaction started with.

    `handle`: the dist-info's folder, open since then; pip and uv share no lock with us.
    """
    folder = ground.site + "/" + journal.dist_info["name"]
    with facts.named(folder):
        held = os.fstat(handle)
    same = facts.exists(folder) and held.st_nlink > 0
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
                "look after the disk, then run the command again",
            )


def own_folders(home: str) -> None:
    """Check that the folders of the state are patchq's own, and can be written."""
    reason = obstacles.own(home)
    if reason is not None:
        raise RefusalError(
            "in-the-way",
            reason,
            "patchq keeps its state in %s, and must be able to write there" % home,
            "remove the cause, then run the command again",
        )


def reachable(site: str, entries: Iterable[Entry], modules: Iterable[str]) -> None:
    """Check that all that a transaction touches is inside the environment at this moment.

    A folder may have become a link since its journal was written, or the journal and
    the state be another's work.
    """
    real, mounted = os.path.realpath(site), facts.mounts()
    paths = dict.fromkeys(modules)
    for entry in entries:
        # A folder is made, owned and removed by its name: it must not be a link itself.
        paths[entry.path + "/." if entry.role == "folder" else entry.path] = None
    for path in paths:
        reason = facts.beneath(site, real, path, mounted)
        if reason is not None:
            raise RefusalError(
                "in-the-way",
                "%s/%s cannot be replaced" % (site, path),
                reason,
                "put the folder back as it was, then run the command again",
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


def _stuck_bytecode(here: Environment, module: str, goes: bool) -> None:
    for path in bytecode.of(here.site, module):
        reason = bytecode.removable(here.site, path)
        without = goes and not bytecode.is_cached(path)
        if reason is not None and (without or bytecode.unchecked(here.site, path)):
            raise RefusalError(
                "in-the-way",
                "%s would be run instead of the patched module" % here.at(path),
                "it is %s bytecode, and cannot be removed: %s"
                % ("the deleted module's" if without else "unchecked-hash", reason),
                "remove it",
            )
