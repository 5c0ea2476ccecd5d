"""A plain tree: a quilt series on files that nobody knows the release of; the way up.

Nothing pins what a patch is to meet here, as for any foreign patch: its hunks go to their exact
place, else to the one other place that fits; more than one is a conflict. What was put on
is recorded as an exact patch of what it changed, so that the way back needs no search. As with
quilt the patches below one that does not fit stay on. The words are `telling`'s.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from patchq import standing
from patchq.conversation import judging, look, telling, view
from patchq.conversation.commit import Change, Ground, Step, send
from patchq.engine import apply, diff, landing, patchtext, rejects
from patchq.engine.fileheader import PatchFormatError
from patchq.errors import ExitCode
from patchq.model import ABSENT, AppliedPatch, FileState, Patch, PathChange, Series, sha256
from patchq.queue import patchfile, reading, store, writing
from patchq.queue.series import SeriesEntry
from patchq.report import Report
from patchq.transport.channel import Conversation


@dataclass(frozen=True, slots=True)
class How:
    """How patches go on a plain tree, by quilt's options.

    `force`: what fits of one that does not fit goes on. `fuzz`: so much context need not fit.
    `rejects`: a patch that does not go on leaves its rejects. `quiet`: name patches, not files.
    """

    force: bool = False
    fuzz: int = 0
    rejects: bool = False
    quiet: bool = False


@dataclass(frozen=True, slots=True)
class Put:
    """One patch put on, or not, in thought: its changes, its record, what is said of it.

    `rejects` has a text for each file of which a part does not fit.
    """

    patch: str
    on: bool
    lines: tuple[str, ...]
    changes: tuple[PathChange, ...] = ()
    record: bytes = b""
    forced: bool = False
    rejects: Mapping[str, bytes] | None = None
    notes: tuple[str, ...] = ()


def series(queue: store.Queue, release: str) -> Series:
    """Return a quilt series with its patches; one whose file is missing is empty, as in quilt.

    Raises:
        UsageError: there is no file `series`.
        PatchFormatError: a patch cannot be read.
    """
    listed = store.series(queue, release).entries
    return Series(release, tuple(_read(queue, release, entry) for entry in listed), None)


def _read(queue: store.Queue, release: str, entry: SeriesEntry) -> Patch:
    """Return a patch of a series."""
    path = queue.folder / release / entry.name
    if reading.read(path) is None:
        return Patch(entry.name, b"", b"", (), entry.strip, entry.reverse)
    return patchfile.load(
        path,
        name=entry.name,
        strip=entry.strip,
        reverse=entry.reverse,
        exists=lambda name: (queue.folder / name).is_file(),
    )


def ordered(queue: store.Queue, release: str, name: str, paths: Sequence[str]) -> list[str]:
    """Return a patch's files in quilt's order: as they stand in its file, then others by name."""
    listed = store.series(queue, release).entries
    found = [_read(queue, release, entry) for entry in listed if entry.name == name]
    kept = [path for patch in found for path in patch.paths if path in paths]
    return [*kept, *sorted(path for path in paths if path not in kept)]


def push(
    aim: view.Aim, ground: Ground, seen: view.Sight, goal: int, how: How, verb: str = "push"
) -> Conversation[Report]:
    """Put patches on up to `goal`, as far as they fit."""
    start = len(seen.applied)
    todo: list[Patch] = []
    unread: PatchFormatError | None = None
    for entry in store.series(seen.queue, seen.release).entries[start:goal]:
        try:
            todo.append(_read(seen.queue, seen.release, entry))
        except PatchFormatError as error:
            unread = error
            break
    if unread is not None and not todo:
        raise unread
    paths = tuple(dict.fromkeys(path for patch in todo for path in patch.paths))
    seen = yield from look.again(aim, seen, view.Want(True, extra=paths, more=("patches",)))
    tree = judging.tree_of(seen.survey, paths)
    puts: list[Put] = []
    for patch in todo:
        puts.append(_put(seen, patch, tree, how))
        if not puts[-1].on or puts[-1].forced:
            break
    on = [one for one in puts if one.on]
    if on and not ground.dry_run:
        yield from _settle(aim, ground, seen, on, tree, verb)
    for name, text in (puts[-1].rejects or {}).items() if puts and not ground.dry_run else ():
        writing.write(seen.queue.folder / f"{name}.rej", text)
    done = _report(ground, seen, puts, how, verb)
    if unread is None or done.exit_code is not ExitCode.DONE:
        return done
    notes = (unread.what, f"  why: {unread.why}", f"  mend: {unread.mend}")
    return replace(done, notes=(*done.notes, *notes), exit_code=ExitCode.FAILED)


def recorded(
    name: str,
    before: Mapping[str, apply.File | None],
    after: Mapping[str, apply.File | None],
    changes: Sequence[PathChange],
) -> Patch:
    """Return a patch as a tree's record has it: git's form, exact places, no header."""
    paths = [change.path for change in changes if change.before != change.after]
    first = {path: before.get(path) for path in paths}
    text = patchtext.patch(b"", first, {path: after.get(path) for path in paths}, {})
    header, diffs = diff.parse(text, name=name, strip=1)
    return Patch(name, text, header, diffs)


def _put(seen: view.Sight, patch: Patch, tree: judging.Tree, how: How) -> Put:
    """Put one patch on what is there; `tree` then has its files as it leaves them."""
    said = [f"Applying patch {patch.name}"]
    if not patch.diffs:
        there = reading.read(seen.queue.folder / seen.release / patch.name) is not None
        said.append(telling.empty(patch.name, there))
        return Put(patch.name, True, tuple(said))
    barred = _barred(seen, patch)
    if barred:
        return Put(patch.name, False, (*said, *barred, telling.unfit(patch.name)))
    landed = landing.land(patch.diffs, tree.get, fuzz=how.fuzz, reverse=patch.reverse)
    if landed.done is not None:
        said += () if how.quiet else telling.landed(landed)
        changes = tuple(landed.done.changes)
        exact = recorded(patch.name, tree, landed.done.after, changes)
        tree.update(landed.done.after)
        return Put(patch.name, True, tuple(said), changes, exact.text)
    parts = rejects.part(patch.diffs, tree.get, fuzz=how.fuzz, reverse=patch.reverse)
    left = {one.path: one.reject for one in parts.files if one.reject}
    said += telling.parts(landed, parts, kept=how.force or how.rejects, quiet=how.quiet)
    if not how.force:
        notes = telling.hints(patch, landed, tree, how.fuzz)
        back = landing.reversible(patch.diffs, tree.get, fuzz=how.fuzz, reverse=patch.reverse)
        said.append(telling.reversible(patch.name) if back else telling.unfit(patch.name))
        kept = left if how.rejects else None
        return Put(patch.name, False, tuple(said), rejects=kept, notes=notes)
    changes = tuple(
        PathChange(
            path, FileState.of(*(file or (None,))), FileState.of(*(parts.after[path] or (None,)))
        )
        for path, file in parts.before.items()
    )
    exact = recorded(patch.name, tree, parts.after, changes)
    tree.update(parts.after)
    said.append(f"Applied patch {patch.name} (forced; needs refresh)")
    return Put(patch.name, True, tuple(said), changes, exact.text, True, left)


def _barred(seen: view.Sight, patch: Patch) -> list[str]:
    """Return why files of a patch may not be written: a problem, or edits of no patch yet."""
    says = standing.recorded(seen.survey.stack)
    out = []
    for path in patch.paths:
        found = seen.survey.files[path]
        if found.problem:
            out.append(f"File {path} can not be patched: {found.problem}")
        elif path in says and standing.live(seen.survey, path) != says[path]:
            owner = next(
                a for a in reversed(seen.applied) if any(c.path == path for c in a.changes)
            )
            out.append(
                f"File {path} has edits that are not in {owner.patch} yet:"
                f" `patchq refresh {owner.patch}' puts them in"
            )
    return out


def _settle(
    aim: view.Aim,
    ground: Ground,
    seen: view.Sight,
    puts: Sequence[Put],
    tree: judging.Tree,
    verb: str,
) -> Conversation[None]:
    """Make real what was put on in thought."""
    stack = list(seen.survey.stack)
    steps: dict[str, Step] = {}
    blobs: dict[str, bytes] = {}
    for one in puts:
        digest = sha256(one.record)
        blobs[digest] = one.record
        release, changes = seen.release, one.changes
        stack.append(
            AppliedPatch(seen.queue.name, one.patch, release, digest, changes, forced=one.forced)
        )
        for change in changes:
            there = standing.live(seen.survey, change.path)
            same = "adopt" if there == ABSENT else "detach"  # an edit must not reach the original
            how = "write" if there != change.after else same
            steps[change.path] = Step(PathChange(change.path, there, change.after), how)
    for path in steps:
        file = tree.get(path)
        if file is not None:
            blobs[sha256(file[0])] = file[0]
    names = tuple(one.patch for one in puts)
    every = tuple(steps.values())
    yield from send(
        aim,
        ground,
        seen,
        Change(verb, seen.release, every, tuple(stack), {"push": names}, blobs),
    )


def _report(ground: Ground, seen: view.Sight, puts: Sequence[Put], how: How, verb: str) -> Report:
    """Return what a push says, in quilt's words."""
    lines: list[str] = []
    for one in puts:
        lines += one.lines
        if one.on and not one.forced and not how.quiet:
            lines.append("")
    on = [one.patch for one in puts if one.on]
    done = all(one.on and not one.forced for one in puts)
    if done:
        lines.append(f"Now at patch {on[-1]}")
    if ground.dry_run:
        lines.append("Nothing was changed.")
    document = {
        "verb": verb,
        "direction": "push",
        "dry_run": ground.dry_run,
        "queue": seen.queue.name,
        "site": seen.survey.site,
        "patches": on,
        "forced": [one.patch for one in puts if one.forced],
        "stuck": None if done or puts[-1].forced else puts[-1].patch,
        "paths": list(dict.fromkeys(c.path for one in puts if one.on for c in one.changes)),
        "rejects": sorted(f"{name}.rej" for name in puts[-1].rejects or ()),
        "top": on[-1] if on else seen.applied[-1].patch if seen.applied else None,
        "said": lines,
    }
    code = ExitCode.DONE if done else ExitCode.FAILED
    return Report(tuple(lines), tuple(n for one in puts for n in one.notes), document, code)
