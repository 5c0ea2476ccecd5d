"""Folders that come and go whole, each by one rename.

RECORD lists files only. An installer that finds a new folder before its files are in it, or
after they are gone, leaves it there. So a folder that a transaction makes is filled in
stage/ first, and one that it removes is taken to stage/ with all that is in it. Both may be
stopped anywhere and run again. Where somebody else's file is in the way, files go one by one.
"""

from __future__ import annotations

import errno
import os
from typing import Callable, Iterator, Sequence, Set, Tuple

from patchq.agent import bytecode, facts
from patchq.agent.journal import Entry, Journal


def is_made(entry: Entry) -> bool:
    """Return whether an entry is a folder that the transaction makes."""
    return entry.role == "folder" and entry.before["kind"] == "absent"


def is_removed(entry: Entry) -> bool:
    """Return whether an entry is a folder that the transaction removes."""
    return entry.role == "folder" and entry.after["kind"] == "absent"


def fill(site: str, stage: str, entries: Sequence[Entry]) -> None:
    """Move what goes into a new folder into its staged one, where it is not in place yet."""
    for _, top in _tops(entries, is_made):
        root = "%s/%s" % (stage, top.new)
        if not facts.is_folder(root):
            continue
        below = [e for e in _below(entries, top) if e.new is not None]
        pairs = [("%s/%s" % (stage, e.new), root + e.path[len(top.path) :]) for e in below]
        if facts.exists("%s/%s" % (site, top.path)):  # somebody made it meanwhile
            pairs = [(inside, outside) for outside, inside in reversed(pairs)]
        for source, target in pairs:
            if facts.exists(source):
                os.rename(source, target)


def take(
    site: str,
    stage: str,
    found: Journal,
    tops: Callable[[Entry], bool],
    ours: Callable[[Entry], bool],
) -> None:
    """Take folders to stage/ that hold nothing but compiled files and what is `ours`."""
    for number, top in _tops(found.entries, tops):
        live, gone = "%s/%s" % (site, top.path), _gone(stage, number)
        if not facts.is_folder(live) or facts.is_link(live) or facts.exists(gone):
            continue
        if top.new is not None and facts.exists("%s/%s" % (stage, top.new)):
            continue  # another's: ours was not put in place yet
        known = {e.path for e in _below(found.entries, top) if e.role != "folder" and ours(e)}
        for module in found.modules:
            compiled = bytecode.of(site, module)
            known.update(path for path in compiled if bytecode.removable(site, path) is None)
        folders = {e.path for e in found.entries if e.role == "folder"}
        if _holds_only(site, top.path, known, folders):
            try:
                os.rename(live, gone)
            except OSError as error:  # a folder of a lower layer (overlayfs) does not move
                if error.errno not in (errno.EXDEV, errno.EPERM, errno.EACCES):
                    raise


def put_back(site: str, stage: str, entries: Sequence[Entry]) -> None:
    """Put folders back that were taken because the transaction removes them."""
    for number, top in _tops(entries, is_removed):
        live, gone = "%s/%s" % (site, top.path), _gone(stage, number)
        if facts.exists(gone) and not facts.exists(live):
            os.rename(gone, live)


def clear(folder: str) -> None:
    """Remove a folder of stage/ with all that is in it."""
    for parent, folders, files in os.walk(folder, topdown=False):
        for name in files:
            os.unlink(os.path.join(parent, name))
        for name in folders:
            full = os.path.join(parent, name)
            os.unlink(full) if facts.is_link(full) else os.rmdir(full)
    os.rmdir(folder)


def remove(folder: str) -> None:
    """Remove a folder that patchq made, if nobody put anything into it."""
    try:
        bytecode.clear(folder)
        os.rmdir(folder)
    except FileNotFoundError:
        pass
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise


def _gone(stage: str, number: int) -> str:
    return "%s/%d.gone" % (stage, number)


def _tops(entries: Sequence[Entry], kind: Callable[[Entry], bool]) -> Iterator[Tuple[int, Entry]]:
    """Yield the folders of a kind that are in no other of that kind, by their number."""
    paths = {entry.path for entry in entries if kind(entry)}
    for number, entry in enumerate(entries):
        if kind(entry) and os.path.dirname(entry.path) not in paths:
            yield number, entry


def _below(entries: Sequence[Entry], top: Entry) -> Sequence[Entry]:
    return [entry for entry in entries if entry.path.startswith(top.path + "/")]


def _holds_only(site: str, top: str, known: Set[str], folders: Set[str]) -> bool:
    for parent, names, files in os.walk(os.path.join(site, top)):
        here = os.path.relpath(parent, site)
        for name in names:
            path = os.path.join(here, name)
            fine = path in folders or name == bytecode.CACHE
            if not fine or facts.is_link(os.path.join(site, path)):
                return False
        if any(os.path.join(here, name) not in known for name in files):
            return False
    return True
