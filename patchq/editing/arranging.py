"""Patches that get another name, or go: rename, delete, fork.

The queue's files and the environment's record change together: what the series calls a
patch is what the record calls it. A verb that takes a file away can keep it as ``NAME~``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from patchq.conversation import desk, move, view
from patchq.conversation.commit import Ground
from patchq.conversation.desk import Desk
from patchq.conversation.goal import Upto
from patchq.editing import basing
from patchq.errors import ExitCode, PatchqError, QuiltError
from patchq.queue import arrangement, editing, reading, series, store
from patchq.queue.series import SeriesFile
from patchq.report import Report, brief
from patchq.transport.channel import Conversation


def rename(aim: view.Aim, ground: Ground, new: str, name: str | None) -> Conversation[Report]:
    """Give a patch another name, the top one if `name` is None; on or not.

    Raises:
        PatchqError: there is no such patch, or one that is called so.
    """
    at = yield from desk.sit(aim, ground)
    old = _named(at, name)
    return (yield from _as(at, old, new, keep=False))


def fork(aim: view.Aim, ground: Ground, new: str | None) -> Conversation[Report]:
    """Go on with a copy of the top patch; the old file stays as it is, out of this series.

    Without a name a fork that is as its patch still is not forked again: a run that was
    cut short when all was done had no chance to say so.

    Raises:
        PatchqError: no patch is on, or one is called so.
    """
    at = yield from desk.sit(aim, ground)
    old = at.applied(None).patch
    was = _forked(at, old) if new is None else None
    if was is None:
        return (yield from _as(at, old, new or arrangement.next_name(old), keep=True))
    word = f"Fork of patch {was} created as {old}"
    note = f"it is as {was} still, and was made before"
    document = {"verb": "fork", "queue": at.seen.queue.name, "patch": old, "was": was}
    return Report((word,), (f"{note}; for another: patchq fork NAME",), document)


def _forked(at: Desk, name: str) -> str | None:
    """Return the patch that another one is a fork of, in which nothing was changed since."""
    for was in arrangement.previous_names(name):
        if was not in at.seen.names and name in at.seen.names and _same(at, was, name):
            return was
    return None


def _as(at: Desk, old: str, new: str, *, keep: bool) -> Conversation[Report]:
    """Make a patch go by another name, in a file of its own if the old one is to stay."""
    release = at.seen.release
    new = series.named(new, "the patch's new name")
    listed = store.series(at.seen.queue, release)
    path = at.seen.queue.folder / release / new
    done = _is_done(at, old, new)  # by a run that was cut short before the record
    if not done and (new in at.seen.names or (path.exists() and not _same(at, old, new))):
        raise QuiltError(
            f"Patch {new} exists already, please choose a {'new' if keep else 'different'} name",
            why=f"see {path}",
            mend=f"patchq {'fork' if keep else 'rename'} ANOTHER-NAME",
        )
    verb = "fork" if keep else "rename"
    word = f"Patch {old} renamed to {new}"
    if keep:
        word = f"Fork of patch {old} created as {new}"
    document = {"verb": verb, "queue": at.seen.queue.name, "patch": new, "was": old}
    if at.ground.dry_run:
        return Report((word,), (), document)
    edit = editing.Edit(
        desk.queue_at(at, release),
        release,
        listed if done else arrangement.renamed(listed, old, new),
        _files(at, release, (old, new), keep=keep),
    )
    notes = editing.write(edit, (yield from _read(at, release)))
    held = next((one for one in at.seen.applied if one.patch == old), None)
    if held is not None:
        stack = desk.replaced(at.stack, held, replace(held, patch=new))
        yield from desk.settle(at, verb, (), stack, {}, {verb: (new,)})
    return Report((word,), (*notes, *_noted(at, old, new)), document)


def _is_done(at: Desk, old: str, new: str) -> bool:
    """Return whether the series calls a patch by its new name where the record has the old one."""
    names, held = at.seen.names, [one.patch for one in at.seen.applied]
    if old not in held or old in names:
        return False
    return names[: len(held)] == tuple(new if name == old else name for name in held)


def _same(at: Desk, *names: str) -> bool:
    """Return whether two patches' files are there, and equal."""
    texts = [reading.read(at.seen.queue.folder / at.seen.release / name) for name in names]
    return texts[0] is not None and texts[0] == texts[1]


def _files(
    at: Desk, release: str, names: tuple[str, str], *, keep: bool
) -> Mapping[str, bytes | None]:
    """Return what becomes of the patch's file and of its sketch."""
    folder = at.seen.queue.folder
    out: dict[str, bytes | None] = {}
    old, new = names
    stems = [one.removesuffix(".patch").removesuffix(".diff") for one in names]
    shared = any(
        old in [one.name for one in store.series(at.seen.queue, other).entries]
        for other in at.seen.queue.releases
        if other != release
    )
    moves = [(editing.patch(release, old), editing.patch(release, new), keep)]
    if not at.seen.tree:
        moves.append((f"{release}/{stems[0]}.pyi", f"{release}/{stems[1]}.pyi", keep))
        moves.append((f"post/{stems[0]}.pyi", f"post/{stems[1]}.pyi", keep or shared))
    for source, goal, stays in moves:
        text = reading.read(folder / source)
        if text is not None:
            out[goal] = text
            if not stays:
                out[source] = None
    return out


def _noted(at: Desk, old: str, new: str) -> tuple[str, ...]:
    stem = old.removesuffix(".patch").removesuffix(".diff")
    if stem not in at.seen.queue.patches:
        return ()
    fresh = new.removesuffix(".patch").removesuffix(".diff")
    return (f"queue.toml still speaks of [patches.{stem}]: correct it to [patches.{fresh}]",)


def _read(at: Desk, release: str) -> Conversation[editing.Read | None]:
    if at.seen.tree:
        return None
    return (yield from basing.base(at, release))


def delete(
    aim: view.Aim,
    ground: Ground,
    name: str | None,
    *,
    following: bool,
    files: bool,
    backup: bool,
    force: bool = False,
) -> Conversation[Report]:
    """Take a patch out of the series, off first where it is on top.

    `following`: the next patch to apply, not the top one. `files`: its file and its sketch go,
    too; `backup` keeps them as ``NAME~``. `force`: edits that are not in it go with it.

    Raises:
        PatchqError: patches are on above it.
    """
    at = yield from desk.sit(aim, ground, orders=True)
    if name is None and aim.shared.recovered:
        raise _cut_short(at)
    old = _to_go(at, name, following)
    on = any(one.patch == old for one in at.seen.applied)
    if on:
        tried = yield from move.pop(aim, replace(ground, dry_run=True), Upto(), force)
        if tried.exit_code is not ExitCode.DONE:
            return tried
    document = {"verb": "delete", "queue": at.seen.queue.name, "patch": old, "files": files}
    if ground.dry_run:
        lines = brief(tried.lines) if on else ()
        return Report((*lines, f"Would remove patch {old}"), (), document)
    release = at.seen.release
    listed = store.series(at.seen.queue, release)
    if _lists(listed, old):
        listed = arrangement.removed(listed, old)
    gone = _gone(at, release, old) if files else {}
    edit = editing.Edit(at.seen.queue, release, listed, gone, backup=backup)
    notes = editing.write(edit, (yield from _read(at, release)))
    if not on:
        return Report((f"Removed patch {old}",), notes, document)
    # Last, so that a run that is cut short leaves the same patch on top for the next one.
    done = yield from move.pop(aim, ground, Upto(), force)
    if done.exit_code is not ExitCode.DONE:
        return replace(done, notes=(*done.notes, *notes))
    return Report((*brief(done.lines), f"Removed patch {old}"), notes, document)


def _cut_short(at: Desk) -> PatchqError:
    """Return the error for a delete of the top patch where it is not known which that was."""
    top = at.seen.applied[-1].patch if at.seen.applied else "none"
    return PatchqError(
        "a change that was cut short was brought to its end; no patch was deleted now",
        why=f"it may have been this delete; on top is {top}",
        mend="patchq series -v, then by its name: patchq delete NAME",
    )


def _to_go(at: Desk, name: str | None, following: bool) -> str:
    """Return the patch that `delete` means."""
    held = [one.patch for one in at.seen.applied]
    if following:
        left = [one for one in at.seen.names if one not in held]
        if not left:
            raise QuiltError(
                "No next patch", why="all patches of the series are on", mend="patchq delete"
            )
        name = left[0]
    old = _named(at, name)
    if old in held and old != held[-1]:
        raise QuiltError(
            f"Patch {old} is currently applied",
            why=f"{held[-1]} is on above it",
            mend=f"patchq goto {old}, then: patchq delete",
        )
    return old


def _gone(at: Desk, release: str, old: str) -> dict[str, bytes | None]:
    """Return the files of a patch that no other series has."""
    names = [editing.patch(release, old)]
    stem = old.removesuffix(".patch").removesuffix(".diff")
    others = [one for one in at.seen.queue.releases if one != release]
    if not at.seen.tree:
        names.append(f"{release}/{stem}.pyi")
        if not any(_lists(store.series(at.seen.queue, one), old) for one in others):
            names.append(f"post/{stem}.pyi")
    return {name: None for name in names if (at.seen.queue.folder / name).exists()}


def _lists(file: SeriesFile, name: str) -> bool:
    return any(one.name == name for one in file.entries)


def _named(at: Desk, name: str | None) -> str:
    """Return a patch of the series by its name, the top one for None."""
    if name is None:
        return at.applied(None).patch
    if name in [one.patch for one in at.seen.applied]:
        return name
    names = list(at.seen.names)
    return names[Upto(name).index(names, "in series")]
