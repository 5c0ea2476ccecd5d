"""Making a patch: begin one, give it files, take some away, undo edits that are not in it yet.

The words are quilt's. Each verb changes the queue's files first and then the environment's
record, or the other way round where a file goes live; run again it finds what is left to do.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from patchq import plan, standing
from patchq.conversation import desk, view
from patchq.conversation.commit import Ground, Step
from patchq.conversation.desk import Desk
from patchq.editing import basing, reviewing
from patchq.errors import ExitCode, PatchqError, QuiltError, UsageError
from patchq.model import ABSENT, AppliedPatch, FileState, PathChange, sha256
from patchq.queue import arrangement, editing, series, store
from patchq.queue.series import SeriesEntry
from patchq.report import Report
from patchq.transport.channel import Conversation

_EMPTY = sha256(b"")


def new(aim: view.Aim, ground: Ground, name: str, strip: int) -> Conversation[Report]:
    """Begin a patch on top of those that are on.

    Raises:
        PatchqError: there is a patch of that name, or the series is not as the stack is.
    """
    at = yield from desk.sit(aim, ground, begins=True)
    seen = at.seen
    release = basing.release(at)
    entry = SeriesEntry(series.named(name, "the new patch's name"), strip)
    listed = listing(at, release)
    names = [one.name for one in listed.entries]
    below = [one.patch for one in seen.applied]
    if names[: len(below)] != below:
        raise out_of_order(at, names)
    path = seen.queue.folder / release / entry.name
    listed_at = names.index(entry.name) if entry.name in names else len(below)
    begun = not seen.tree and listed_at == len(below) and _is_empty(path)  # and was cut short
    if not begun and (entry.name in names or path.exists()):
        raise QuiltError(
            f"Patch {entry.name} exists already",
            why=f"it is in the series for {release}" if entry.name in names else f"see {path}",
            mend="patchq new ANOTHER-NAME",
        )
    applied = AppliedPatch(seen.queue.name, entry.name, release, _EMPTY, ())
    done = Report(
        (f"Patch {entry.name} is now on top",),
        (),
        {"verb": "new", "queue": seen.queue.name, "release": release, "patch": entry.name},
    )
    if ground.dry_run:
        return replace(done, lines=(f"Would make patch {entry.name}",))
    files = {} if seen.tree else {editing.patch(release, entry.name): b""}
    if entry.name not in names:
        listed = arrangement.inserted(listed, entry, below[-1] if below else None)
    queue = desk.queue_at(at, release)
    read = None if seen.tree else (yield from basing.base(at, release))
    notes = editing.write(editing.Edit(queue, release, listed, files), read)
    if not seen.tree:
        notes += reviewing.review(queue, release, entry.name, aim.cache())
    stack = (*at.stack, applied)
    at = replace(at, seen=basing.chosen(at.seen, release))
    yield from desk.settle(at, "new", (), stack, {_EMPTY: b""}, {"new": (entry.name,)})
    return replace(done, notes=notes)


def _is_empty(path: Path) -> bool:
    return path.is_file() and not path.stat().st_size


def listing(at: Desk, release: str) -> series.SeriesFile:
    """Return a release's series, an empty one where there is none yet."""
    try:
        return store.series(desk.queue_at(at, release), release)
    except UsageError:
        if store.listing(at.seen.queue, release).exists():
            raise
        return arrangement.EMPTY


def out_of_order(at: Desk, names: Sequence[str]) -> PatchqError:
    """Return the error for a series whose start is not what is on."""
    return QuiltError(
        "The series file no longer matches the applied patches. Please run 'patchq pop -a'.",
        why=f"applied are {', '.join(one.patch for one in at.seen.applied)};"
        f" the series has {', '.join(names) or 'none'}",
        mend="patchq pop -a",
    )


def add(
    aim: view.Aim, ground: Ground, paths: Sequence[str], name: str | None, force: bool
) -> Conversation[Report]:
    """Give files to a patch, before they are edited or after.

    Raises:
        PatchqError: no patch is on, or a file can not be replaced.
    """
    at = yield from desk.sit(aim, ground, paths)
    patch = at.applied(name)
    editing.check(at.seen.queue, patch.release)
    lines: list[str] = []
    notes: list[str] = []
    todo: list[str] = []
    code = ExitCode.DONE
    for path in dict.fromkeys(paths):
        word = unfit(at, patch, path, force)
        if word is None:
            todo.append(path)
            lines.append(f"File {path} added to patch {patch.patch}")
        else:
            notes.append(word[0])
            code = max(code, word[1]) if code else word[1]
    document: dict[str, object] = {
        "verb": "add",
        "queue": at.seen.queue.name,
        "patch": patch.patch,
        "files": todo,
    }
    made = [path for path in todo if at.now(path) is None]
    document["new"] = made
    if not at.seen.tree:
        notes += [f"{path} is not there yet: the patch will make it" for path in made]
    if todo and not ground.dry_run:
        yield from give(at, patch, todo)
    return Report(tuple(lines), tuple(notes), document, code)


def unfit(at: Desk, patch: AppliedPatch, path: str, force: bool) -> tuple[str, ExitCode] | None:
    """Return why a file can not be given to a patch, and how the verb then ends."""
    reason = basing.forbidden(at, path)
    if reason is not None:
        return reason, ExitCode.FAILED
    if desk.has(patch, path):
        return f"File {path} is already in patch {patch.patch}", ExitCode.NOTHING_TO_DO
    above = at.above(patch, path)
    if above is not None:
        return f"File {path} modified by patch {above.patch}", ExitCode.FAILED
    found = at.survey.files[path]
    if found.problem is not None:
        return f"File {path} can not be patched: {found.problem}", ExitCode.FAILED
    owner = at.owner(path)
    if owner is not None and owner.queue != patch.queue:
        return (
            f"File {path} is changed by {owner.patch} of queue {owner.queue} below:"
            f" a patch of {patch.queue} is made on the release; patchq pop -a --queue"
            f" {owner.queue} first",
            ExitCode.FAILED,
        )
    if owner is not None and at.edited(path) and not force:
        return (
            f"File {path} has edits that belong to {owner.patch}: `patchq refresh {owner.patch}'"
            f" keeps them there; patchq add -f {path} takes them into {patch.patch}",
            ExitCode.FAILED,
        )
    return None


def give(at: Desk, patch: AppliedPatch, paths: Sequence[str]) -> Conversation[None]:
    """Record files as a patch's; each is as it was, in a place of its own on the disk."""
    index = at.stack.index(patch)
    first = yield from desk.texts(at, index, paths)
    states = desk.states(first, paths)
    changes = tuple(PathChange(path, states[path], states[path]) for path in paths)
    steps = [desk.taken(at, path, states[path], first[path]) for path in paths]
    stack = desk.replaced(at.stack, patch, replace(patch, changes=(*patch.changes, *changes)))
    blobs = contents(at, steps, first.values())
    yield from desk.settle(at, "add", steps, stack, blobs, {"add": (patch.patch,)})


def contents(
    at: Desk, steps: Sequence[Step], more: Iterable[desk.File | None] = ()
) -> dict[str, bytes]:
    """Return the bytes that steps speak of, by digest."""
    blobs: dict[str, bytes] = {}
    for step in steps:
        digest = step.change.before.sha256
        if digest is not None and digest in at.survey.contents:
            blobs[digest] = at.survey.contents[digest]
    for file in more:
        if file is not None:
            blobs[sha256(file[0])] = file[0]
    return blobs


def remove(
    aim: view.Aim, ground: Ground, paths: Sequence[str], name: str | None
) -> Conversation[Report]:
    """Take files out of a patch; each is again as the patches below leave it.

    Raises:
        PatchqError: a file is not in the patch, or a patch above changes it.
    """
    at = yield from desk.sit(aim, ground, paths)
    patch = at.applied(name)
    for path in paths:
        above = _above(at, patch, path)
        if above is not None:
            raise QuiltError(
                f"File {path} modified by patch {above.patch}",
                why=f"what {patch.patch} makes of it lies below that",
                mend=f"patchq pop {patch.patch}",
            )
    lines = tuple(f"File {path} removed from patch {patch.patch}" for path in paths)
    document = {"verb": "remove", "patch": patch.patch, "files": list(paths)}
    if ground.dry_run:
        return Report(tuple(f"Would remove {path}" for path in paths), (), document)
    below = yield from desk.texts(at, at.stack.index(patch), paths)
    left = tuple(change for change in patch.changes if change.path not in paths)
    text, notes = yield from basing.rewritten(at, patch, left)
    changed = replace(patch, changes=left, sha256=sha256(text))
    stack = desk.replaced(at.stack, patch, changed)
    steps = [_back(at, stack, path, below[path]) for path in paths]
    blobs = {**contents(at, steps, below.values()), changed.sha256: text}
    yield from desk.settle(at, "remove", steps, stack, blobs, {"remove": (patch.patch,)})
    return Report(lines, notes, document)


def _back(at: Desk, stack: tuple[AppliedPatch, ...], path: str, below: desk.File | None) -> Step:
    """Return the step by which a file is as it was below a patch."""
    goal = FileState.of(*below) if below is not None else ABSENT
    change = PathChange(path, standing.live(at.survey, path), goal)
    return Step(change, "write" if any(desk.has(one, path) for one in stack) else "original")


def _above(at: Desk, patch: AppliedPatch, path: str) -> AppliedPatch | None:
    """Return the patch above that has a file of a patch, too; the patch must have it."""
    if desk.has(patch, path):
        return at.above(patch, path)
    raise QuiltError(
        f"File {path} is not in patch {patch.patch}",
        why=f"it has {', '.join(c.path for c in patch.changes) or 'no file'}",
        mend="patchq files",
    )


def revert(
    aim: view.Aim, ground: Ground, paths: Sequence[str], name: str | None
) -> Conversation[Report]:
    """Undo edits that are not in the patch yet.

    Raises:
        PatchqError: a file is not in the patch, or a patch above changes it.
    """
    at = yield from desk.sit(aim, ground, paths)
    patch = at.applied(name)
    for path in paths:
        above = _above(at, patch, path)
        if above is not None:
            raise QuiltError(
                f"File {path} modified by patch {above.patch}",
                why=f"edits of it belong to {above.patch}",
                mend=f"patchq revert -P {above.patch} {path}",
            )
    edited = [path for path in dict.fromkeys(paths) if at.edited(path)]
    lines = [
        f"Changes to {path} in patch {patch.patch} reverted"
        if path in edited
        else f"File {path} is unchanged"
        for path in dict.fromkeys(paths)
    ]
    document = {"verb": "revert", "patch": patch.patch, "files": edited}
    if edited and not ground.dry_run:
        index = at.stack.index(patch)
        goal = yield from desk.texts(at, index + 1, edited)
        steps = [
            Step(PathChange(path, standing.live(at.survey, path), at.recorded(path)))
            for path in edited
        ]
        blobs = contents(at, steps, goal.values())
        yield from desk.settle(at, "revert", steps, at.stack, blobs, {"revert": (patch.patch,)})
    return Report(tuple(lines), (), document)


def position(at: Desk, but: AppliedPatch | None = None) -> bool:
    """Raise where the stack is not the start of the series; return False where `but` differs.

    `but` is a patch whose file in the queue may be another than the one that is on.

    Raises:
        PatchqError: the series was changed under the patches that are on.
    """
    if at.seen.tree:  # `look` compares them always
        return True
    found = plan.position(at.seen.lock, at.seen.queue.name, at.survey)
    if not isinstance(found, plan.Conflict):
        return True
    if but is None or (found.kind, found.patch) != (plan.Kind.CHANGED_PATCH, but.patch):
        raise out_of_order(at, at.seen.names)
    return False
