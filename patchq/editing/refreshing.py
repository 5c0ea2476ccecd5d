"""refresh: what was edited goes into its patch, and the patch's file is written anew.

The diff is from what lies below the patch to what is there now; a file that a patch above
has, too, keeps what the record says of it. Edits of files that no patch has go into the top
patch where they are named, or with all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from patchq import standing
from patchq.conversation import desk, view
from patchq.conversation.commit import Ground, Step
from patchq.conversation.desk import Desk, File
from patchq.editing import basing, formed, making, splitting
from patchq.editing.formed import state_of
from patchq.engine import patchtext, trailing
from patchq.errors import ExitCode, PatchqError, QuiltError
from patchq.model import AppliedPatch, FileState, PathChange, sha256
from patchq.queue import reading
from patchq.report import Report
from patchq.transport.channel import Conversation


def refresh(
    aim: view.Aim, ground: Ground, name: str | None, how: formed.How
) -> Conversation[Report]:
    """Write a patch anew from what it changes now.

    Raises:
        PatchqError: it is not on, or patches above have its files and `force` is not set.
    """
    at = yield from desk.sit(aim, ground)
    patch = at.applied(name)
    same = making.position(at, None if how.fork is not None else patch)
    top = patch is at.seen.applied[-1]
    if how.fork is not None and not top:
        raise QuiltError(
            "Can only refresh the topmost patch with -z currently",
            why=f"{at.seen.applied[-1].patch} lies above {patch.patch}",
            mend=f"patchq goto {patch.patch}",
        )
    loose: tuple[str, ...] = ()
    if top and how.take:
        loose = yield from desk.edits(at)
        if loose:
            at = yield from desk.again(at, loose)
            patch = at.applied(name)
    shadowed = [c.path for c in patch.changes if at.above(patch, c.path) is not None]
    if shadowed and not how.force:
        raise QuiltError(
            f"More recent patches modify files in patch {patch.patch}. Enforce refresh with -f.",
            why=f"{', '.join(shadowed)}: what is there now is theirs",
            mend=f"patchq refresh -f {patch.patch}   # leaves those files as the patch has them",
        )
    _foreign(at, patch)
    desk.check_places(at, [*(change.path for change in patch.changes), *loose])
    if loose and how.whitespace and how.fork is None and not ground.dry_run:
        # Their edits are in the record before a byte of them is changed: then none can be lost.
        yield from making.give(at, patch, loose)
        at = yield from desk.again(at)
        patch = at.applied(name)
    if how.fork is not None:
        return (yield from splitting.split(at, patch, how, loose))
    return (yield from _whole(at, patch, how, loose, shadowed, same))


def _whole(
    at: Desk,
    patch: AppliedPatch,
    how: formed.How,
    loose: tuple[str, ...],
    shadowed: Sequence[str],
    same: bool,
) -> Conversation[Report]:
    paths = list(dict.fromkeys([*(change.path for change in patch.changes), *loose]))
    index = at.stack.index(patch)
    before = yield from desk.texts(at, index, paths)
    kept = yield from desk.texts(at, index + 1, shadowed)
    after = {
        path: kept[path] if path in kept else _now(at, path, before[path], how) for path in paths
    }
    check_text(before, after)
    names = sorted(paths) if how.sort else basing.ordered(at, patch, paths)
    warnings = spaced(at, before, after, how.whitespace)
    text = formed.written(
        at, patch, {p: before[p] for p in names}, {p: after[p] for p in names}, how
    )
    if not same and not how.force and text_of(at, patch) != text:
        raise PatchqError(
            f"Patch {patch.patch} was changed in the queue after it was applied here",
            why="a refresh would write over that",
            mend=f"patchq refresh -f {patch.patch}   # or, without the edits: patchq pop -a",
        )
    changes = tuple(
        PathChange(path, FileState.of(*(before[path] or (None,))), state_of(after[path]))
        for path in names
    )
    done = yield from _settled(at, patch, changes, text, (before, after), how, loose)
    return replace(done, warnings=tuple(warnings))


def text_of(at: Desk, patch: AppliedPatch) -> bytes | None:
    """Return a patch's file; that of a refresh that was cut short is as it is to be."""
    return reading.read(at.seen.queue.folder / patch.release / patch.patch)


def check_text(before: Mapping[str, File | None], after: Mapping[str, File | None]) -> None:
    """Raise where a file that changed is binary: no patch could hold it."""
    for path, file in after.items():
        was = before[path]
        if file != was and any(b"\0" in one[0] for one in (was, file) if one is not None):
            raise QuiltError(
                f"Diff failed on file '{path}', aborting",
                why="it has NUL bytes, so it is not text; a patch is made of lines",
                mend=f"patchq remove {path}",
            )


def spaced(
    at: Desk, before: Mapping[str, File | None], after: Mapping[str, File | None], stripped: bool
) -> list[str]:
    """Return quilt's words on spaces that end lines; `stripped`: they are gone in `after`."""
    out = []
    does = "Removing trailing whitespace from" if stripped else "Warning: trailing whitespace in"
    for path, file in after.items():
        was, now = before[path], at.now(path) if stripped else file
        numbers = trailing.ends(was and was[0], now and now[0])
        if numbers:
            word = "line" if len(numbers) == 1 else "lines"
            out.append(f"{does} {word} {','.join(map(str, numbers))} of {path}")
    return out


def _settled(
    at: Desk,
    patch: AppliedPatch,
    changes: tuple[PathChange, ...],
    text: bytes,
    files: tuple[Mapping[str, File | None], Mapping[str, File | None]],
    how: formed.How,
    loose: tuple[str, ...],
) -> Conversation[Report]:
    """Write the patch and record it; what is there already is not written again."""
    before, after = files
    record = _record(at, changes, text, files)
    path = at.seen.queue.folder / patch.release / patch.patch
    old = path.read_bytes() if path.exists() else None
    fresh = replace(patch, changes=changes, sha256=sha256(record), forced=False)
    notes = [f"File {path} added to patch {patch.patch}" for path in loose]
    word, document = _told(at, patch, changes, (old, text), loose)
    if at.ground.dry_run:
        shown = tuple(text.decode("utf-8", "surrogateescape").split("\n")[:-1])
        return Report(shown, (), document)
    if old is not None or any(change.before != change.after for change in changes):
        notes += yield from basing.saved(at, fresh, text, how.backup, how.strip)
    if fresh != patch or loose or _rewritten(at, patch, after):
        steps = [
            taken(at, patch, change, before[change.path], after[change.path]) for change in changes
        ]
        stack = desk.replaced(at.stack, patch, fresh)
        blobs = making.contents(at, steps, [*before.values(), *after.values()])
        blobs[fresh.sha256] = record
        yield from desk.settle(at, "refresh", steps, stack, blobs, {"refresh": (patch.patch,)})
    return Report((word,), tuple(notes), document, ExitCode.DONE)


def _record(
    at: Desk,
    changes: tuple[PathChange, ...],
    text: bytes,
    files: tuple[Mapping[str, File | None], Mapping[str, File | None]],
) -> bytes:
    """Return the patch as the environment keeps it: its file, on a plain tree an exact patch."""
    if not at.seen.tree:
        return text
    before, after = files
    real = [change.path for change in changes if change.before != change.after]
    return patchtext.patch(b"", {p: before[p] for p in real}, {p: after[p] for p in real}, {})


def _told(
    at: Desk,
    patch: AppliedPatch,
    changes: tuple[PathChange, ...],
    texts: tuple[bytes | None, bytes],
    loose: tuple[str, ...],
) -> tuple[str, dict[str, object]]:
    """Return what is said of a patch whose file had an old text and gets a new one."""
    old, text = texts
    same = old == text and not loose
    files = [change.path for change in changes if change.before != change.after]
    word = f"Refreshed patch {patch.patch}"
    if not files and (at.seen.tree or old in (None, text)):
        word = f"Nothing in patch {patch.patch}"
    elif same:
        word = f"Patch {patch.patch} is unchanged"
    return word, {
        "verb": "refresh",
        "queue": at.seen.queue.name,
        "patch": patch.patch,
        "files": files,
        "added": list(loose),
        "changed": not same,
    }


def taken(
    at: Desk, patch: AppliedPatch, change: PathChange, before: File | None, after: File | None
) -> Step:
    """Return the step that records a file as it is, or puts what it is to be there."""
    path, there = change.path, standing.live(at.survey, change.path)
    if not _is_top(at, patch, path):
        return Step(PathChange(path, there, there), "adopt")
    if state_of(after) == there:
        return desk.taken(at, path, there, before)
    edited = at.owner(path) is None and there != state_of(before)
    return Step(
        PathChange(path, there, state_of(after)), "write", state_of(before) if edited else None
    )


def _is_top(at: Desk, patch: AppliedPatch, path: str) -> bool:
    """Return whether what is at a path now belongs to a patch, or may go into it."""
    return at.above(patch, path) is None


def _rewritten(at: Desk, patch: AppliedPatch, after: Mapping[str, File | None]) -> bool:
    return any(
        state_of(file) != standing.live(at.survey, path)
        for path, file in after.items()
        if _is_top(at, patch, path)
    )


def _now(at: Desk, path: str, before: File | None, how: formed.How) -> File | None:
    """Return a file as it is, without spaces at the ends of new lines where that is asked for."""
    file = at.now(path)
    if file is None or not how.whitespace:
        return file
    return trailing.stripped(before and before[0], file[0]), file[1]


def _foreign(at: Desk, patch: AppliedPatch) -> None:
    """Raise where another queue's patch lies below or above in a file of the patch."""
    for change in patch.changes:
        for one in at.stack:
            if one.queue != patch.queue and desk.has(one, change.path):
                raise PatchqError(
                    f"{change.path} is changed by {one.patch} of queue {one.queue}, too",
                    why=f"{patch.patch} is written as a change of the release's own text",
                    mend=f"patchq pop -a --queue {one.queue}",
                )
