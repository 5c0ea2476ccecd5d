"""How a change of queue files is taken back: by git, by ``NAME~``, or by another verb."""

from __future__ import annotations

import shlex

from patchq import git
from patchq.queue import editing, reading
from patchq.queue import series as series_file


def told(
    edit: editing.Edit, other: str = "", *, then: str = "", locked: bool = True
) -> tuple[str, ...]:
    """Return what is to be said of the way back from an edit; ask before it is written.

    `other` is a verb of patchq that undoes it; `then` what git's way is to be followed by,
    where an environment is to come along. `locked`: the series has a lock, which is written
    with it; a plain tree's has none, and there nothing is said where nothing can be typed.
    """
    old, fresh = _changed(edit)
    if not old and not fresh:
        return ()
    lock = editing.patch(edit.release, "series.lock")
    lock_there = locked and edit.at(lock).is_file()
    kept = git.kept(edit.queue.folder, [*old, *([lock] if lock_there else [])])
    where = shlex.quote(str(edit.queue.folder))
    if kept is not None and kept.issuperset(old):
        names = [*old, *(name for name in (lock,) if name in kept and name not in old)]
        words = [f"git -C {where} checkout -- {shlex.join(names)}"] if names else []
        words += [f"rm {shlex.join(str(edit.at(name)) for name in fresh)}"] if fresh else []
        if other:
            return (f"To take it back: {other}; the files alone: {' && '.join(words)}",)
        return (f"To take it back: {' && '.join([*words, then] if then else words)}",)
    if other:
        return (f"To take it back: {other}",)
    series = editing.patch(edit.release, edit.queue.listing)
    lost = [name for name in old if name != series and reading.read(edit.at(name))]
    if not lost:
        return _listed(edit, series) if locked and series in old else ()
    if edit.backup:
        words = [shlex.join(("mv", f"{edit.at(name)}~", str(edit.at(name)))) for name in lost]
        words.append(f"patchq lint --write --queue {where}") if locked else None
        return (f"To take it back: {' && '.join(words)}",)
    if not locked:
        return ()
    why = "it is in no git repository" if kept is None else "git has not seen it as it was"
    them = f"The old text of {', '.join(lost)} is kept nowhere: {why}"
    return (f"{them}; --backup keeps it as NAME~, git (init, add, commit) everything",)


def _listed(edit: editing.Edit, series: str) -> tuple[str, ...]:
    """Return what the series was, where nothing else says it."""
    was = series_file.parse(reading.read(edit.at(series)) or b"", name=series)
    names = [entry.name for entry in was.entries]
    return (f"The series was: {', '.join(names)}",) if names else ()


def _changed(edit: editing.Edit) -> tuple[list[str], list[str]]:
    """Return the files that an edit replaces or takes away, and those that it makes."""
    files = {editing.patch(edit.release, edit.queue.listing): edit.series.to_bytes(), **edit.files}
    old, fresh = [], []
    for name, data in files.items():
        there = reading.read(edit.at(name))
        if there is None and data is not None:
            fresh.append(name)
        elif there != data:
            old.append(name)
    return old, fresh
