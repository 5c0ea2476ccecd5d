"""Answer ``hash``: which files of a distribution are not as its RECORD says.

Every file that RECORD lists is read and hashed, but for those whose names end as the
request says (``skip``: binaries) and those outside of the environment (scripts). Then
the folders in which RECORD lists a file are gone through for files that it does not
list. Only what differs is answered, and RECORD itself if it is not among the digests
in ``known``. Nothing here writes.
"""

from __future__ import annotations

import binascii
import errno
import hashlib
import io
import os
import stat
from typing import Any, Dict, Iterator, List, Mapping, Optional, Set, Tuple

from patchq.agent import facts, protocol, record
from patchq.agent.environment import Environment, locate

_OPEN = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
_CHUNK = 1 << 20
# Names in one answer; how many more there are is told.
_MOST = 2000
_URLSAFE = bytes.maketrans(b"+/", b"-_")


def answer(request: Mapping[str, Any]) -> Tuple[Dict[str, Any], Dict[str, bytes]]:
    """Answer with the files that differ from RECORD, by digest, null for a missing one."""
    here = locate(request)
    data = here.installed.record if here.installed is not None else None
    skip = tuple(request.get("skip") or ())
    listed = dict(_rows(data or b""))
    differs: Dict[str, Optional[str]] = {}
    hashed = 0
    for path, (digest, size) in listed.items():
        if not digest or path.endswith(skip):
            continue
        hashed += 1
        found = _digest(here.at(path), size)
        if found is None or _written(found) != digest:
            differs[path] = None if found is None else found.hex()
    added = _added(here, listed, skip)
    own = {} if data is None else {protocol.sha256(data): data}
    known = request.get("known") or ()
    return {
        "record": next(iter(own), None),
        "differs": dict(list(differs.items())[:_MOST]),
        "added": dict(list(added.items())[:_MOST]),
        "hashed": hashed,
        "more": max(0, len(differs) - _MOST) + max(0, len(added) - _MOST),
    }, {name: text for name, text in own.items() if name not in known}


def _rows(data: bytes) -> Iterator[Tuple[str, Tuple[str, int]]]:
    """Yield path, digest as RECORD writes it ("" for none) and size of every row inside."""
    import csv  # heavy, and of use here only

    text = data.decode("utf-8", "surrogateescape")
    for row in csv.reader(io.StringIO(text, newline="")):
        if len(row) == 3 and _inside(row[0]):
            kind, _, digest = row[1].partition("=")
            size = int(row[2]) if row[2].isdigit() else 0
            yield row[0], (digest if kind == "sha256" else "", size)


def _inside(path: str) -> bool:
    return bool(path) and not path.startswith("/") and ".." not in path.split("/")


def _written(digest: bytes) -> str:
    text = binascii.b2a_base64(digest, newline=False).rstrip(b"=")
    return text.translate(_URLSAFE).decode()


def _digest(full: str, size: int) -> Optional[bytes]:
    """Return the SHA-256 of a regular file, links followed, None where there is none."""
    try:
        handle = os.open(full, _OPEN)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO):
            return None
        raise
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return None
        data = os.read(handle, min(size + 1, _CHUNK))
        digest = hashlib.sha256(data)
        # A read that gave less than was asked for may not have been the last.
        while data and len(data) != size:
            data = os.read(handle, _CHUNK)
            digest.update(data)
        return digest.digest()
    finally:
        os.close(handle)


def _added(
    here: Environment, listed: Mapping[str, object], skip: Tuple[str, ...]
) -> Dict[str, Optional[str]]:
    """Return the files of the package's folders that neither RECORD nor another's lists."""
    folders: Set[str] = {path.rpartition("/")[0] for path in listed}
    folders = {folder for folder in folders if folder and not _foreign(folder)}
    found: List[str] = []
    for folder in sorted(folders):
        for path in _unlisted(here, folder, folders):
            if path not in listed and not path.endswith(skip):
                found.append(path)
    others = _other_records(here) if found else []
    return {
        path: facts.look(here.at(path))[0].sha256
        for path in found
        if not any(record.find(data, path) is not None for data in others)
    }


def _foreign(folder: str) -> bool:
    return folder.split("/")[0].endswith((".dist-info", ".data", ".egg-info"))


def _unlisted(here: Environment, folder: str, known: Set[str]) -> Iterator[str]:
    """Yield the files of a folder, and all below it in folders of which nothing is known."""
    try:
        entries = sorted(os.scandir(here.at(folder)), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        path = folder + "/" + entry.name
        if entry.is_dir(follow_symlinks=False):
            inner = path + "/"
            if entry.name != "__pycache__" and path not in known:
                if any(other.startswith(inner) for other in known):
                    continue
                yield from _unlisted(here, path, known)
        elif not entry.name.endswith(".pyc"):
            yield path


def _other_records(here: Environment) -> List[bytes]:
    out = []
    own = here.installed.folder if here.installed is not None else ""
    for name in os.listdir(here.site):
        if name.endswith(".dist-info") and name != own:
            out.append(facts.optional(os.path.join(here.site, name, "RECORD")) or b"")
    return out
