"""A plain tree's series as `patchq.exchange` wants it: its files below all patches are read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from patchq.conversation import desk, look, view
from patchq.conversation.commit import Ground
from patchq.editing import basing, restacking
from patchq.engine.apply import File
from patchq.errors import PatchqError
from patchq.exchange.source import Base, Source
from patchq.transport.channel import Conversation

# What is no file of the tree: its records, and those of others.
_OWN = (".patchq", ".pc", ".git", ".hg", ".svn")


def tree(aim: view.Aim, ground: Ground) -> Conversation[Source]:
    """Return the series of a plain tree.

    Raises:
        PatchqError: a patch can not be read.
    """
    seen = yield from look.sight(aim, view.Want(True, more=("patches",)))
    at = desk.Desk(aim, ground, seen)
    read = yield from basing.base(at, seen.release)
    patches = restacking.patches(at, len(seen.names))
    root = Path(seen.survey.site)
    touched = {path for patch in patches for path in patch.paths}
    touched.update(change.path for one in at.stack for change in one.changes)

    def found(path: str) -> File | None:
        return read(path) if path in touched else _file(root / path)

    def files() -> Iterator[tuple[str, bytes, bool]]:
        for path in sorted({*_walk(root, seen.release), *touched}):
            file = found(path)
            if file is not None:
                yield path, *file

    base = Base(files=files)
    return Source(seen.queue, seen.release, root.name, patches, found, base, search=True)


def unapplied(aim: view.Aim, ground: Ground) -> Conversation[Source]:
    """Return the series of a plain tree on which no patch is.

    Raises:
        PatchqError: a patch is on, and its record would not be what its file says.
    """
    source = yield from tree(aim, ground)
    seen = yield from look.sight(aim)
    if seen.applied:
        raise PatchqError(
            f"patches are on in {seen.survey.site}",
            why=f"{seen.applied[-1].patch} is on top; a series is brought back as a whole",
            mend="patchq pop -a",
        )
    return source


def _walk(root: Path, patches: str) -> Iterator[str]:
    """Yield what is in a tree, but for folders and the records in it."""
    for folder, below, names in os.walk(root):
        inside = Path(folder).relative_to(root)
        below[:] = [
            name
            for name in below
            if name not in _OWN and (inside / name).as_posix() != patches.rstrip("/")
        ]
        for name in names:
            yield (inside / name).as_posix()


def _file(path: Path) -> File | None:
    if path.is_symlink() or not path.is_file():
        return None
    return path.read_bytes(), bool(path.stat().st_mode & 0o100)
