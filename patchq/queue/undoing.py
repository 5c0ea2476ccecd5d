"""The way back of an edit of queue files: kept while they are written, and after a crash.

It is the folder ``.patchq-edit`` in the queue's, format 1: ``list`` has a JSON line for each
file before it is replaced, made or taken away::

    ["0.16.0/10-a.patch", "<sha256 of what it becomes>" or null for none, 3 or null]

The number is the name beside ``list`` of the old file, a second link to it where there can be
one, so that the way back needs no room on a full disk; null where there was none. An edit
that was cut short is taken back as a whole by the next verb that writes, which holds the
queue (`patchq.queue.holding`). A file that is neither as before nor as it was to become was
changed by somebody since, and stays.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from pathlib import Path
from types import TracebackType

from patchq.agent import protocol
from patchq.errors import PatchqError

FOLDER = ".patchq-edit"
_LIST = "list"


class Undo:
    """The way back of one edit of a queue: a context, in which each file is `keep`-ed first.

    Whatever ends the context before its time takes the edit back.
    """

    def __init__(self, folder: Path) -> None:
        self._root, self._count = folder, 0
        self._folder = folder / FOLDER

    def __enter__(self) -> Undo:
        return self

    def keep(self, path: Path, new: bytes | None) -> None:
        """Note that a file is to become `new`, None for no file; one that lies elsewhere is not.

        Raises:
            OSError: it can not be kept; nothing was changed yet.
        """
        root = self._root.resolve()
        place = path.parent.resolve() / path.name
        if not place.is_relative_to(root):
            return
        self._folder.mkdir(exist_ok=True)
        number = None
        if os.path.lexists(place):
            number = self._count
            _second(place, self._folder / str(number))
        self._count += 1
        digest = None if new is None else protocol.sha256(new)
        line = json.dumps([str(place.relative_to(root)), digest, number])
        with (self._folder / _LIST).open("a", encoding="ascii") as file:
            file.write(line + "\n")
            file.flush()
            os.fsync(file.fileno())

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            _remove(self._root)
            return
        with contextlib.suppress(PatchqError):  # the next verb that writes tries again
            take_back(self._root)


def is_cut_short(folder: Path) -> bool:
    """Return whether a queue's folder has an edit that is not at its end, or never will be."""
    return os.path.lexists(folder / FOLDER)


def take_back(folder: Path) -> tuple[str, ...]:
    """Take back an edit that was cut short, where there is one; return what is to be said of it.

    Raises:
        PatchqError: a file can not be put back.
    """
    if not is_cut_short(folder):
        return ()
    stays = []
    noted = _noted(folder)
    try:
        for name, new, number in reversed(noted):
            kept = None if number is None else folder / FOLDER / str(number)
            if not _back(folder / name, new, kept):
                stays.append(name)
        _remove(folder)
    except OSError as error:
        raise PatchqError(
            f"an edit of the queue in {folder} was cut short, and can not be taken back",
            why=f"{error.filename or folder}: {error.strerror or error}",
            mend=f"see to {folder}, then run it again",
        ) from error
    if not noted:
        return ()
    notes = [f"an edit of the queue in {folder} was cut short; it was taken back"]
    notes += [f"{name} was changed since, and stays as it is" for name in dict.fromkeys(stays)]
    return tuple(notes)


def _noted(folder: Path) -> list[tuple[str, str | None, int | None]]:
    """Return what the list has, as far as it can be read: a last line may be cut."""
    found: list[tuple[str, str | None, int | None]] = []
    with contextlib.suppress(FileNotFoundError, ValueError, TypeError):
        text = (folder / FOLDER / _LIST).read_text("ascii")
        for line in text.split("\n")[:-1]:
            name, new, number = json.loads(line)
            inside = (folder / name).parent.resolve().is_relative_to(folder.resolve())
            if protocol.unsafe(name) is not None or not inside:
                break  # it is none of ours
            found.append((name, new, None if number is None else int(number)))
    return found


def _back(path: Path, new: str | None, kept: Path | None) -> bool:
    """Make a file as it was; return False for one that somebody changed since."""
    now = _digest(path)
    old = None if kept is None else _digest(kept)
    if now == old:
        return True
    if now != new:
        return False
    if kept is None:
        path.unlink()
    else:
        path.parent.mkdir(parents=True, exist_ok=True)
        os.replace(kept, path)
    return True


def _second(path: Path, name: Path) -> None:
    """Give a file a second name, or a copy where it can not have one."""
    name.unlink(missing_ok=True)
    try:
        os.link(path, name, follow_symlinks=False)
    except OSError:
        shutil.copy2(path, name, follow_symlinks=False)


def _digest(path: Path) -> str | None:
    try:
        return protocol.sha256(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return None


def _remove(folder: Path) -> None:
    """Take the way back away, the list first: without it there is nothing to take back."""
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        (folder / FOLDER / _LIST).unlink()
    if os.path.islink(folder / FOLDER):
        (folder / FOLDER).unlink()
    shutil.rmtree(folder / FOLDER, ignore_errors=True)
