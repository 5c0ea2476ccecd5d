"""Answer ``hash``: which files of a distribution are not as its RECORD says.

Every file that RECORD lists is read and hashed, but for those whose names end as the
request says (``skip``: binaries) and those outside of the environment (scripts). Then
the folders in which RECORD lists a file are gone through for code that it does not
list (`patchq.agent.unlisted`). Only what differs is answered, and RECORD itself if it is
not among the digests in ``known``. ``blank`` are files whose row has no SHA-256, so that
RECORD proves nothing of them. With ``recent``, files that nobody wrote to since the
distribution was installed, by size and times, are not read. Nothing here writes.
"""

from __future__ import annotations

import binascii
import errno
import hashlib
import io
import os
import stat
from typing import Any, Dict, Iterator, Mapping, Optional, Tuple

from patchq.agent import facts, protocol, unlisted
from patchq.agent.environment import Environment, locate
from patchq.agent.facts import RefusalError

_OPEN = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
_CHUNK = 1 << 20
_NOTHING = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO, errno.ENAMETOOLONG)
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
    blank: Dict[str, Optional[str]] = {}
    hashed = 0
    mark = _installed(here) if request.get("recent") else None
    for path, (digest, size) in listed.items():
        if path.endswith(skip) or (mark is not None and _untouched(here.at(path), size, mark)):
            continue
        if digest or not _own(path):
            hashed += 1
            found = _digest(here.at(path), size)
            if not digest:
                blank[path] = None if found is None else found.hex()
            elif found is None or _written(found) != digest:
                differs[path] = None if found is None else found.hex()
    added: Dict[str, Optional[str]] = {}
    for path in unlisted.paths(here, listed, skip):
        found = _digest(here.at(path), 0)
        added[path] = None if found is None else found.hex()
    own = {} if data is None else {protocol.sha256(data): data}
    known = request.get("known") or ()
    each = {"differs": differs, "added": added, "blank": blank}
    return {
        "record": next(iter(own), None),
        **{name: dict(list(some.items())[:_MOST]) for name, some in each.items()},
        "hashed": hashed,
        "more": sum(max(0, len(some) - _MOST) for some in each.values()),
    }, {name: text for name, text in own.items() if name not in known}


def _installed(here: Environment) -> Optional[os.stat_result]:
    """Return when the distribution was installed: by its METADATA, which nobody edits."""
    if here.installed is None:
        return None
    return facts.status(here.at(here.installed.folder + "/METADATA"))


def _untouched(full: str, size: int, mark: os.stat_result) -> bool:
    """Return whether a file is of the size that RECORD has, and older than its METADATA.

    An edit gives a file a later ctime; where all files were copied since, it is the mtime that
    is later. `hash` without ``recent`` trusts neither.
    """
    found = facts.status(full)
    if found is None or not stat.S_ISREG(found.st_mode) or found.st_size != size:
        return False
    return found.st_ctime_ns < mark.st_ctime_ns and found.st_mtime_ns <= mark.st_mtime_ns


def _own(path: str) -> bool:
    """Return whether a row has no digest by its nature: RECORD's own, and signatures of it."""
    folder, _, name = path.rpartition("/")
    return folder.endswith(".dist-info") and name.split(".")[0] == "RECORD"


def _rows(data: bytes) -> Iterator[Tuple[str, Tuple[str, int]]]:
    """Yield path, digest as RECORD writes it ("" for none) and size of every row inside."""
    import csv  # heavy, and of use here only

    text = data.decode("utf-8", "surrogateescape")
    try:
        for row in csv.reader(io.StringIO(text, newline="")):
            if len(row) == 3 and _inside(row[0]):
                kind, _, digest = row[1].partition("=")
                plain = row[2].isdigit() and row[2].isascii() and len(row[2]) < 20
                size = int(row[2]) if plain else 0
                yield row[0], (digest if kind == "sha256" else "", size)
    except csv.Error as error:
        raise RefusalError(
            "damaged-record",
            "RECORD cannot be read",
            "it is not CSV: %s" % error,
            "reinstall the distribution",
        ) from error


def _inside(path: str) -> bool:
    if not path or path.startswith("/") or "\0" in path:
        return False
    return ".." not in path.split("/")


def _written(digest: bytes) -> str:
    text = binascii.b2a_base64(digest, newline=False).rstrip(b"=")
    return text.translate(_URLSAFE).decode()


def _digest(full: str, size: int) -> Optional[bytes]:
    """Return the SHA-256 of a regular file, links followed, None where there is none."""
    try:
        handle = os.open(full, _OPEN)
    except OSError as error:
        if error.errno in _NOTHING:
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
