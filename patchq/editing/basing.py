"""What an edited series rests on: its release, the pristine files, and its patches' text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from patchq import standing
from patchq.conversation import desk, plain, pristine, view
from patchq.conversation.desk import Desk
from patchq.editing import reviewing
from patchq.engine import apply, patchtext
from patchq.model import AppliedPatch, Lock, Patch, PathChange
from patchq.queue import arrangement, editing, patchfile, reading, store
from patchq.queue.series import SeriesEntry
from patchq.transport.channel import Conversation


def release(at: Desk) -> str:
    """Return the release whose series is edited: the one that fits, else the installed one's."""
    if at.seen.choice is not None:
        return at.seen.choice.release
    assert at.survey.installed is not None
    return standing.public(at.survey.installed.version)


def chosen(seen: view.Sight, named: str) -> view.Sight:
    """Return a sight whose series is that of a release, also where it was made just now."""
    if seen.choice is not None:
        return seen
    locks = {**seen.locks, named: Lock(seen.queue.distribution, named, "", ())}
    return replace(seen, choice=standing.Choice(named, "version"), locks=locks)


def base(at: Desk, named: str, more: Iterable[str] = ()) -> Conversation[editing.Read]:
    """Return what reads the pristine files of a series: the store's, else the environment's own.

    Those that a patch of the series touches are at hand, and `more`.
    """
    queue = desk.queue_at(at, named)
    paths = {*more, *(c.path for one in at.stack for c in one.changes)}
    if store.listing(queue, named).is_file():
        for _, one in store.each(queue, named):
            paths.update(getattr(one, "paths", ()))
    missing = [path for path in paths if path not in at.survey.files]
    if missing:
        wider = yield from desk.again(at, missing)
        at = replace(at, seen=replace(wider.seen, choice=at.seen.choice, locks=at.seen.locks))
    stored = pristine.files(at.aim.cache(), queue.distribution, named, paths)
    left = [path for path in paths if path not in stored and _known(at, path)]
    found: dict[str, apply.File | None] = dict((yield from desk.texts(at, 0, left)))
    found.update(stored)
    return found.get


def _known(at: Desk, path: str) -> bool:
    """Return whether the environment can tell what a file was."""
    if any(desk.has(one, path) for one in at.stack):
        return True
    return at.survey.files[path].state == at.original(path)


def forbidden(at: Desk, path: str) -> str | None:
    """Return why a file can never be part of a patch of this tree, None where it can."""
    from patchq.agent import protocol

    if at.seen.tree:
        for own in (f"{at.seen.queue.releases[0]}/", ".pc/"):
            if path.startswith(own):
                return f"File {path} is located below {own}"
    reason = protocol.unsafe(path)
    return f"File {path} can not be patched: {reason}" if reason else None


def header(at: Desk, patch: AppliedPatch) -> bytes:
    """Return the header of a patch's file, byte for byte; none where there is no file yet."""
    old = _old(at, patch)
    return b"" if old is None else old.header


def ordered(at: Desk, patch: AppliedPatch, paths: Sequence[str]) -> list[str]:
    """Return the files of a patch in the order in which they are written into it."""
    if not at.seen.tree:
        return list(paths)
    return plain.ordered(at.seen.queue, patch.release, patch.patch, paths)


def _old(at: Desk, patch: AppliedPatch) -> Patch | None:
    """Return a patch as its file has it, None where there is none yet."""
    there = at.seen.queue.folder
    path = there / patch.release / patch.patch
    if reading.read(path) is None:
        return None
    listed = entry(at, patch)
    return patchfile.load(
        path,
        name=patch.patch,
        strip=listed.strip if listed else 1,
        exists=lambda name: not at.seen.tree or (there / name).is_file(),
    )


def entry(at: Desk, patch: AppliedPatch) -> SeriesEntry | None:
    """Return a patch's line of its series, None where it is in it no more."""
    queue = desk.queue_at(at, patch.release)
    listed = store.series(queue, patch.release).entries
    return next((one for one in listed if one.name == patch.patch), None)


def rewritten(
    at: Desk, patch: AppliedPatch, left: tuple[PathChange, ...]
) -> Conversation[tuple[bytes, tuple[str, ...]]]:
    """Write a patch's file anew with a part of what it changes; return its recorded text.

    A plain tree's file stays as it is until the patch is refreshed, as with quilt.
    """
    index = at.stack.index(patch)
    real = [change.path for change in left if change.before != change.after]
    before = yield from desk.texts(at, index, real)
    after = yield from desk.texts(at, index + 1, real)
    if at.seen.tree:
        return patchtext.patch(b"", before, after, {}), ()
    text = patchtext.patch(header(at, patch), before, after, {})
    return text, (yield from saved(at, patch, text))


def saved(
    at: Desk, patch: AppliedPatch, text: bytes, backup: bool = False, strip: str | None = None
) -> Conversation[tuple[str, ...]]:
    """Put a patch's text and the lock on disk; return what is to be said of it.

    `strip` is the form that was asked for. The series then says how the text is to be read:
    it is never a reversed one.
    """
    queue = desk.queue_at(at, patch.release)
    listed = store.series(queue, patch.release)
    old = entry(at, patch)
    if old is not None:
        usual = old.strip if at.seen.tree else 1
        now = usual if strip is None else int(strip == "1" or strip == "ab")
        if (old.strip, old.reverse) != (now, False):
            listed = arrangement.optioned(listed, old.name, now, False)
    files: Mapping[str, bytes | None] = {editing.patch(patch.release, patch.patch): text}
    edit = editing.Edit(queue, patch.release, listed, files, backup)
    paths = [change.path for change in patch.changes]
    read = None if at.seen.tree else (yield from base(at, patch.release, paths))
    notes = editing.write(edit, read)
    if at.seen.tree:
        return notes
    return (*notes, *reviewing.review(queue, patch.release, patch.patch, at.aim.cache()))
