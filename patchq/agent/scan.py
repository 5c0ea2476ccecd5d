"""Answer what is in the environment: ``survey`` and ``read``. Nothing here writes."""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

from patchq.agent import facts, holder, obstacles, protocol, record, remains, state
from patchq.agent.environment import Environment, locate, user, with_patches
from patchq.agent.facts import Facts

Message = protocol.Message
# Bytes of receipts in one answer: a quarter of what a frame's JSON may have.
LEDGER_ROOM = 4 << 20
# Bytes of a dist-info's files in one answer.
INFO_ROOM = 16 << 20
# File systems of which the uppermost layer is a container's own (proc(5), mountinfo).
_LAYERED = ("overlay", "aufs", "fuse.fuse-overlayfs")
# How often a survey looks again where somebody wrote meanwhile.
_LOOKS = 5


def survey(request: Message) -> Tuple[Message, Dict[str, bytes]]:
    """Answer what is installed, what the paths hold, and what patchq remembers.

    All of one moment: a transaction that came to its end in between is looked at anew.
    """
    for look in range(_LOOKS):
        here = locate(request)
        began = facts.status(here.home)
        try:
            answer = _seen(request, here)
        except FileNotFoundError:  # it was there a moment ago
            if look + 1 < _LOOKS:
                continue
            raise
        ended = facts.status(here.home)
        same = began is ended or (began and ended and began.st_mtime_ns == ended.st_mtime_ns)
        if same and not moved(here):
            break
    if "running" in (request.get("want") or ()):
        from patchq.agent import processes

        answer[0]["running"] = processes.running(here)
    return answer


def moved(here: Environment) -> bool:
    """Return whether somebody changed what is recorded since the environment was found."""
    if here.installed is not None:
        now = facts.optional(os.path.join(here.site, here.installed.folder, "RECORD"))
        if now != here.installed.record:
            return True
    try:
        return state.load(here.home) != here.state
    except facts.RefusalError:
        return here.state is not None  # else it was damaged before, and `locate` says so


def _seen(request: Message, here: Environment) -> Tuple[Message, Dict[str, bytes]]:
    known = request.get("known")
    want = request.get("want") or ()
    paths = list(request["paths"])
    if here.state is not None:
        paths += here.state["originals"]
        paths += [change[0] for patch in here.state["stack"] for change in patch["changes"]]
        paths = list(dict.fromkeys(paths))
    files: Dict[str, Any] = {}
    blobs: Dict[str, bytes] = {}
    folder_problems: Dict[str, Optional[str]] = {}
    for path in paths if here.site else ():
        found, data = facts.look(here.at(path))
        files[path] = _describe(here, path, found, folder_problems)
        if known is not None and found.sha256 is not None and found.sha256 not in known:
            blobs[found.sha256] = data
    unfinished = state.interrupted(here.home)
    busy = holder.writer(here.home) if unfinished else None
    receipts, broken = _ledger(here, want, unfinished)
    answer = {
        "python": {
            "version": "%d.%d.%d" % sys.version_info[:3],
            "executable": sys.executable,
            "implementation": sys.implementation.name,
        },
        "host": {"name": os.uname().nodename, "user": user(), "time": now()},
        "site": here.site or None,
        "installed": here.installed.to_json() if here.installed else None,
        "refusal": here.refusal.to_json() if here.refusal else None,
        "files": files,
        "state": here.state,
        "orphaned": orphaned(here),
        "interrupted": None if busy else unfinished,
        "busy": dict(busy, id=unfinished["id"]) if busy and unfinished else None,
        "ephemeral": _ephemeral(here),
        "patches": {},
        "ledger": receipts,
        "ledger_broken": broken,
        "records": with_patches(request.get("target")) if "records" in want else None,
    }
    if "patches" in want:
        texts = state.patches(here.home)
        answer["patches"] = {name: len(text) for name, text in texts.items()}
        blobs.update(texts)
    return answer, blobs


def _ledger(
    here: Environment, want: Sequence[str], unfinished: Optional[Message]
) -> Tuple[List[Message], Optional[str]]:
    """Return the receipts that are wanted, and what shows that the ledger is not whole.

    "ledger": all that there is room for; "last": the last one.
    """
    if "ledger" not in want and "last" not in want:
        return [], None
    receipts, broken = state.receipts(here.home)
    broken = broken or (None if unfinished else _cut(here, receipts))
    return _newest(receipts) if "ledger" in want else receipts[-1:], broken


def _cut(here: Environment, receipts: List[Message]) -> Optional[str]:
    """Return what the ledger lacks that the record of what is applied speaks of."""
    if here.state is None:
        return None
    if not receipts:
        return "the ledger is gone, and patches are on"
    known = {one["id"] for one in receipts}
    named = [patch.get("receipt") for patch in here.state["stack"]]
    lost = [str(name) for name in named if name and name not in known]
    if lost:
        return "the ledger lacks receipt %s, by which patches are on" % ", ".join(
            dict.fromkeys(lost)
        )
    last, now = receipts[-1].get("generation"), here.state["generation"]
    if last != now:
        return "the ledger ends at generation %s, the record is of %s" % (last, now)
    return None


def _newest(receipts: List[Message]) -> List[Message]:
    """Return the newest receipts, oldest first, as many as an answer has room for."""
    kept: List[Message] = []
    room = LEDGER_ROOM
    for one in reversed(receipts):
        room -= len(json.dumps(one))
        if kept and room < 0:
            break
        kept.append(one)
    return kept[::-1]


def records(request: Message) -> Tuple[Message, Dict[str, bytes]]:
    """Answer which distributions of the environment have patches on, or `ledgers`, by name."""
    kept = "ledger.jsonl" if request.get("ledgers") else "state.json"
    return {"records": with_patches(request.get("target"), kept)}, {}


def read(request: Message) -> Tuple[Message, Dict[str, bytes]]:
    """Answer with the contents of files, and of the originals that are kept of some.

    Contents of files whose digest is in `known` do not come along. With `info`, the files
    of the dist-info do, by their names in it.
    """
    here = locate(dict(request, paths=list(request.get("paths") or ())))
    known = frozenset(request.get("known") or ())
    blobs: Dict[str, bytes] = {}
    files: Dict[str, Optional[str]] = {}
    for path in request.get("paths") or ():
        found, data = facts.look(here.at(path))
        files[path] = found.sha256
        if found.sha256 is not None and found.sha256 not in known:
            blobs[found.sha256] = data
    originals: Dict[str, Optional[str]] = {}
    for path in request.get("originals") or ():
        data_kept = original(here, path)
        originals[path] = None if data_kept is None else protocol.sha256(data_kept)
        if data_kept is not None:
            blobs[protocol.sha256(data_kept)] = data_kept
    info: Dict[str, Optional[str]] = {}
    if request.get("info") and here.installed is not None:
        for name, text in _info(here.at(here.installed.folder)):
            info[name] = None if text is None else protocol.sha256(text)
            blobs.update({} if text is None else {protocol.sha256(text): text})
    return {"files": files, "originals": originals, "info": info}, blobs


def _info(folder: str) -> Iterator[Tuple[str, Optional[bytes]]]:
    """Yield the files of a dist-info with their bytes, None for what there is no room for."""
    room = INFO_ROOM
    for at, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            full = os.path.join(at, name)
            found = facts.status(full, follow=True)
            data = None
            if found is not None and found.st_size <= room:
                data = facts.optional(full, follow=True)
            room -= len(data or b"")
            yield os.path.relpath(full, folder), data


def original(here: Environment, path: str) -> Optional[bytes]:
    """Return the bytes that a path had before the first push, None where it was absent."""
    found, data = kept(here, path)
    return data if found.sha256 is not None else None


def kept(here: Environment, path: str) -> Tuple[Facts, bytes]:
    """Return what originals/ holds of a path now; nothing is promised of it.

    A kept link is followed from where it was, never from the store.
    """
    entry = here.state["originals"].get(path) if here.state else None
    if entry is None or entry["name"] is None:
        return Facts("absent"), b""
    full = here.home + "/originals/" + entry["name"]
    if not facts.is_link(full):
        return facts.look(full)
    if entry["kind"] != "link":
        return Facts("other"), b""
    own = os.lstat(full)
    found, data = facts.look(os.path.join(os.path.dirname(here.at(path)), os.readlink(full)))
    return found._replace(kind="link", uid=own.st_uid, gid=own.st_gid), data


def orphaned(here: Environment) -> Optional[str]:
    """Return why the recorded stack speaks of files that are gone, or None."""
    if here.state is None:
        return None
    wrote, now_there = here.state["dist_info"], here.installed
    if now_there is None:
        return "%s is not installed any more" % wrote["name"]
    record_now = None if now_there.record is None else protocol.sha256(now_there.record)
    # uv's METADATA may be a link into a cache that was cleared; RECORD never is one.
    dangles = now_there.metadata is None and record_now == wrote["record"]
    if now_there.folder != wrote["name"] or not (
        dangles or now_there.metadata == wrote["metadata"]
    ):
        return "%s is there, the patches were put into %s" % (now_there.folder, wrote["name"])
    if record_now is None or record_now == wrote["record"]:
        return None
    after = {path: new for patch in here.state["stack"] for path, _, new in patch["changes"]}
    modes, gone = remains.modes(here), False
    for path, new in after.items():
        first = first_state(here, path)
        # A copy over the tree takes no file away, and may leave the mode of one.
        made = first is not None and first[2] is None
        made = made and record.find(now_there.record or b"", path) is None
        if new != first and not made and path not in modes:
            gone = True
            if facts.look(here.at(path))[0].wire() == new:
                return None
    if not gone:
        return None
    files = remains.files(here) + modes
    still = "; left of the patches: %s" % ", ".join(files[:5]) if files else ""
    return "RECORD and every patched file were replaced: %s was reinstalled%s" % (
        wrote["name"],
        still,
    )


def first_state(here: Environment, path: str) -> Optional[List[Any]]:
    """Return ``[kind, executable, sha256]`` that a path had before the first push."""
    entry = here.state["originals"].get(path) if here.state else None
    if entry is None:
        return None
    return ["absent" if entry["sha256"] is None else "file", entry["executable"], entry["sha256"]]


def now() -> str:
    """Return the time, UTC, ISO 8601."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def _describe(
    here: Environment, path: str, found: Facts, seen: Dict[str, Optional[str]]
) -> Dict[str, Any]:
    data = here.installed.record if here.installed else None
    return {
        "kind": found.kind,
        "sha256": found.sha256,
        "executable": found.executable,
        "mode": found.mode,
        "size": found.size,
        "recorded": record.digest(data, path) if data else None,
        "problem": obstacles.problem(here, path, found, seen),
    }


def _ephemeral(here: Environment) -> bool:
    """Return whether the tree is in the layer of a container that can be written and goes."""
    at = here.real
    while at and at != "/" and at not in here.mounted:
        at = os.path.dirname(at)
    layered = here.mounted.get(at or "/", ("", ""))[0] in _LAYERED
    return layered and not os.statvfs(here.real).f_flag & os.ST_RDONLY
