"""refresh -z: the edits become a patch of their own, above the top one."""

from __future__ import annotations

from dataclasses import replace

from patchq.conversation import desk
from patchq.conversation.desk import Desk
from patchq.editing import basing, formed, making, reviewing
from patchq.editing.formed import How, state_of
from patchq.engine import patchtext
from patchq.errors import QuiltError
from patchq.model import AppliedPatch, PathChange, sha256
from patchq.queue import arrangement, editing, reading, series
from patchq.queue.series import SeriesEntry
from patchq.report import Report
from patchq.transport.channel import Conversation


def split(at: Desk, patch: AppliedPatch, how: How, loose: tuple[str, ...]) -> Conversation[Report]:
    """Put the edits into a new patch above the top one, which stays as it is.

    Raises:
        PatchqError: nothing was edited, or there is a patch of that name.
    """
    edited = [c.path for c in patch.changes if at.edited(c.path)] + list(loose)
    name = series.named(how.fork or arrangement.next_name(patch.patch), "the new patch's name")
    listed = making.listing(at, patch.release)
    names = [one.name for one in listed.entries]
    there = reading.read(at.seen.queue.folder / patch.release / name)
    free = there is None and name not in names
    if not edited or (name in names and names[names.index(patch.patch) + 1 :][:1] != [name]):
        raise _refused(patch, name, free)
    before = yield from desk.texts(at, len(at.stack), edited)
    after = {path: at.now(path) for path in edited}
    fresh = AppliedPatch(patch.queue, name, patch.release, sha256(b""), ())
    old = basing.entry(at, patch)
    usual = old.strip if old and at.seen.tree else 1  # as `basing.saved` has it
    entry = SeriesEntry(name, usual if how.strip is None else int(how.strip in ("1", "ab")))
    form = how if how.strip or not at.seen.tree else replace(how, strip=str(entry.strip))
    text = formed.written(at, fresh, before, after, form)
    if not free and there != text:  # else it is of a run that was cut short before the record
        raise _refused(patch, name, free)
    rows = listed if name in names else arrangement.inserted(listed, entry, patch.patch)
    changes = tuple(PathChange(p, state_of(before[p]), state_of(after[p])) for p in edited)
    record = patchtext.patch(b"", before, after, {}) if at.seen.tree else text
    fresh = replace(fresh, changes=changes, sha256=sha256(record))
    document = {"verb": "refresh", "queue": at.seen.queue.name, "patch": name, "files": edited}
    if at.ground.dry_run:
        return Report((f"Would fork patch {patch.patch} as {name}",), (), document)
    queue = desk.queue_at(at, patch.release)
    read = None if at.seen.tree else (yield from basing.base(at, patch.release, edited))
    files = {editing.patch(patch.release, name): text}
    notes = editing.write(editing.Edit(queue, patch.release, rows, files), read)
    if not at.seen.tree:
        notes += reviewing.review(queue, patch.release, name, at.aim.cache())
    steps = [desk.taken(at, c.path, c.after, before[c.path]) for c in changes]
    blobs = {**making.contents(at, steps, before.values()), fresh.sha256: record}
    stack = (*at.stack, fresh)
    yield from desk.settle(at, "refresh", steps, stack, blobs, {"new": (name,)})
    return Report((f"Fork of patch {patch.patch} created as {name}",), notes, document)


def _refused(patch: AppliedPatch, name: str, free: bool) -> QuiltError:
    """Return the error for a name that a patch has, or for nothing to put into a new one."""
    if free:
        return QuiltError(
            f"Nothing in patch {name}",
            why=f"no file of {patch.patch} was edited after it was refreshed",
            mend="patchq status",
        )
    return QuiltError(
        f"Patch {name} exists already",
        why=f"the series for {patch.release} or its folder has that name",
        mend="patchq refresh -zANOTHER-NAME",
    )
