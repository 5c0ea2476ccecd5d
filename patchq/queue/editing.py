"""A series changed on disk: patches, sketches, the list, and the lock that follows from them.

An `Edit` is all that a verb wants of one series. `write` puts it there file by file,
each whole: patches that come, the list, the lock, and last what goes. A run that ends before
its time takes back what it wrote, one that is killed leaves that to the next (`undoing`).
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from patchq.engine import apply, carrying
from patchq.errors import PatchqError
from patchq.model import Patch
from patchq.queue import arrangement, store, undoing, writing
from patchq.queue import lock as locks
from patchq.queue import series as series_file
from patchq.queue.undoing import Undo

Read = Callable[[str], "apply.File | None"]


@dataclass(frozen=True, slots=True)
class Edit:
    """What becomes of one series: its list, and files of the queue by their names in it.

    `files` are relative to the queue's folder (``0.16.0/10-a.patch``, ``post/10-a.pyi``);
    None takes one away. `backup` keeps what is replaced, or goes, as ``NAME~``.
    """

    queue: store.Queue
    release: str
    series: series_file.SeriesFile
    files: Mapping[str, bytes | None] = field(default_factory=dict)
    backup: bool = False

    def at(self, name: str) -> Path:
        """Return where a file of the queue is."""
        return self.queue.folder / name


def patch(release: str, name: str) -> str:
    """Return the name in the queue of a patch of a series."""
    return f"{release}/{name}"


def check(queue: store.Queue, release: str) -> None:
    """Raise where the files of a series can not be written, before anything is changed.

    Raises:
        PatchqError: the queue came with patchq, or a folder of it is read-only.
    """
    folder = queue.folder.resolve()
    package = Path(__file__).resolve().parents[1]
    if folder.is_relative_to(package):
        raise PatchqError(
            f"queue {queue.name} came with patchq, and is not edited",
            why=f"the next version of patchq replaces what is in {folder}",
            mend=f"mkdir -p queues, then: cp -r {folder} queues/{queue.name}",
        )
    there = folder / release
    while not there.exists() and there != folder:
        there = there.parent
    if not os.access(there, os.W_OK | os.X_OK):
        raise PatchqError(
            f"{there} can not be written",
            why=f"the patches of queue {queue.name} for {release} are written there",
            mend=f"see to the permissions of {there}, then run it again",
        )


def write(edit: Edit, read: Read | None) -> tuple[str, ...]:
    """Put an edit on disk, and the lock anew; return what is to be said of it.

    `read` returns the pristine release's files; None where a series has no lock (a plain
    tree's). Patches above are carried where that is clear (`patchq.engine.carrying`), and
    where one does not fit any more, the lock ends below it.

    Raises:
        PatchqError: a folder or file can not be written.
    """
    check(edit.queue, edit.release)
    undoing.take_back(edit.queue.folder)
    listed = store.listing(edit.queue, edit.release)
    before = _readable(edit.queue, edit.release) if read is not None else ()
    try:
        listed.parent.mkdir(parents=True, exist_ok=True)
        with Undo(edit.queue.folder) as undo:
            for name, data in edit.files.items():
                if data is not None:
                    _put(edit, undo, name, data)
            _replace(undo, listed, edit.series.to_bytes())
            notes = () if read is None else _relock(edit, undo, before, read)
            for name, data in edit.files.items():
                if data is None:
                    _drop(edit, undo, name)
    except OSError as error:
        raise PatchqError(
            f"{error.filename or listed.parent} can not be written",
            why=error.strerror or str(error),
            mend=f"see to {edit.queue.folder}: its room and its permissions, then run it again",
        ) from error
    return notes


def _replace(undo: Undo, path: Path, data: bytes) -> None:
    """Put a file in place where it is another than the one that is there."""
    if _bytes(path) != data:
        undo.keep(path, data)
        writing.write(path, data)


def _readable(queue: store.Queue, release: str) -> tuple[Patch, ...]:
    """Return the lowest patches of a series that can be read."""
    if not store.listing(queue, release).is_file():
        return ()
    found: list[Patch] = []
    for _, one in store.each(_with(queue, release), release):
        if isinstance(one, PatchqError):
            break
        found.append(one)
    return tuple(found)


def _relock(edit: Edit, undo: Undo, before: tuple[Patch, ...], read: Read) -> tuple[str, ...]:
    """Carry the patches above, and write the lock; return what is to be said of both."""
    queue, release = _with(edit.queue, edit.release), edit.release
    patches = _readable(queue, release)
    carried = carrying.carry(before, patches, read)
    notes = []
    series = edit.series
    given = {one.name: one for one in patches}
    for one in carried.patches:
        if one is not given[one.name]:
            _put(edit, undo, patch(release, one.name), one.text)
            notes.append(f"{one.name} was written anew: {carried.words[one.name]}")
            if (one.strip, one.reverse) != (given[one.name].strip, given[one.name].reverse):
                series = arrangement.optioned(series, one.name, one.strip, one.reverse)
    _replace(undo, edit.at(patch(release, "series")), series.to_bytes())
    old = store.lock(queue, release)
    reads = {one.name: one.reads for one in old.patches} if old else {}
    tree = old.tree if old else ""
    lock = locks.make(queue.distribution, release, tree, carried.patches, read=read, reads=reads)
    _replace(undo, queue.folder / release / "series.lock", locks.format(lock))
    unread = next(
        (one for _, one in store.each(queue, release) if not isinstance(one, Patch)), None
    )
    if carried.unfit is not None:
        notes.append(
            f"{carried.unfit} does not fit on what is below it any more: {carried.why}"
            f" ({_locked(len(carried.patches))})"
        )
    elif isinstance(unread, PatchqError):
        notes.append(f"{unread.what}: {unread.why} ({_locked(len(carried.patches))})")
    return tuple(notes)


def _with(queue: store.Queue, release: str) -> store.Queue:
    """Return the queue with a release counted in, that was made just now."""
    return replace(queue, releases=tuple(dict.fromkeys((*queue.releases, release))))


def _locked(number: int) -> str:
    return f"locked are the {number} below it" if number else "it is the lowest"


def _put(edit: Edit, undo: Undo, name: str, data: bytes) -> None:
    path = edit.at(name)
    old = _bytes(path)
    if old == data:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    if edit.backup and old is not None:
        kept, age = path.with_name(path.name + "~"), path.stat()
        writing.write(kept, old)
        os.utime(kept, ns=(age.st_atime_ns, age.st_mtime_ns))
    goal = _target(path)
    undo.keep(goal, data)
    writing.write(goal, data)


def _target(path: Path) -> Path:
    """Return the file that a link leads to, where it may be written; as with quilt."""
    goal = path.resolve()
    writable = os.access(goal, os.W_OK) and os.access(goal.parent, os.W_OK)
    return goal if path.is_symlink() and writable else path


def _drop(edit: Edit, undo: Undo, name: str) -> None:
    path = edit.at(name)
    if os.path.lexists(path):
        undo.keep(path, None)
    with contextlib.suppress(FileNotFoundError):
        if edit.backup:
            os.replace(path, path.with_name(path.name + "~"))
        else:
            path.unlink()
    # A folder that was for this patch alone goes, too; the series' own stays.
    for folder in Path(name).parents[:-2]:
        with contextlib.suppress(OSError):
            edit.at(str(folder)).rmdir()


def _bytes(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
