"""`sketch`: the post-condition that a patch of a queue implies, judged before it is shown."""

from __future__ import annotations

import functools
from dataclasses import replace
from pathlib import Path

from patchq.engine import apply, draft, sketch
from patchq.engine.takeback import Back, Guard
from patchq.errors import ExitCode, PatchqError, UsageError
from patchq.model import Patch
from patchq.queue import editing, holding, writing
from patchq.queue import store as queues
from patchq.releases import store as releases
from patchq.report import Report


def drafted(
    queue: queues.Queue, name: str, release: str | None, *, cache: Path, write: bool, force: bool
) -> Report:
    """Draft the sketch of a patch on the pristine text of a release.

    Without `release` it is the newest one whose series has the patch. `write` puts it
    to ``post/``, over one that is there only with `force`.
    """
    first = holding.settled(queue.folder) if write else ()
    named = f" --release {release}" if release else ""
    release, patch = _patch(queue, name, release)
    path = queue.folder / queues.SHARED / f"{patch.stem}.pyi"
    if write and path.exists() and not force:
        raise PatchqError(
            f"{path} is there already",
            why="what somebody wrote is not replaced by what a diff implies",
            mend=f"patchq sketch {patch.stem}{named} --queue {queue.folder} --write --force",
        )
    with releases.Store(queue.distribution, cache / "releases") as store:
        if not store.has(release):
            raise PatchqError(
                f"the pristine text of {queue.distribution} {release} is not here",
                why="a sketch is drafted by what the patch changes in it",
                mend=f"patchq fetch {queue.distribution}=={release}",
            )
        back = _back(queue, release, patch, store)
        label = f"{queues.SHARED}/{patch.stem}.pyi"
        found = draft.draft(back, back.patch, name=label)
        text = _headed(found, f"{release}/{patch.name}")
        guards = found.guards
        if found.text:
            guards = tuple(back.guards(sketch.load(text, name=label)))
        if write and found.text:
            _write(queue, path, text, store)
    done = path if write and found.text else None
    report = _report(queue, release, patch, text, guards, done)
    report = replace(report, notes=(*first, *report.notes))
    if not write or found.text:
        return report
    why = back.nature or "the diff brings nothing that is false below it and true above"
    said = f"{path} not written: {'no sketch can speak of it: ' if back.nature else ''}{why}"
    return replace(report, lines=(), notes=(*report.notes, said))


def _write(queue: queues.Queue, path: Path, text: bytes, store: releases.Store) -> None:
    """Write the sketch, and the locks that were up to date: a push needs no lint then."""
    locked = [one for one in queue.releases if store.has(one) and _is_locked(queue, one)]
    for release in locked:
        editing.check(queue, release)
    path.parent.mkdir(exist_ok=True)
    writing.write(path, text)
    for release in locked:
        edit = editing.Edit(queue, release, queues.series(queue, release))
        editing.write(edit, functools.partial(_read, store, release))


def _is_locked(queue: queues.Queue, release: str) -> bool:
    try:
        return queues.verify(queue, release) is None
    except PatchqError:  # a file of the series can not be read; lint says which
        return False


def _read(store: releases.Store, release: str, path: str) -> apply.File | None:
    return store.read_many(release, (path,)).get(path)


def _patch(queue: queues.Queue, name: str, release: str | None) -> tuple[str, Patch]:
    """Return the patch of that name, and the release whose series has it."""
    stem = name.removesuffix(".patch").removesuffix(".diff")
    for one in (release,) if release else reversed(queue.releases):
        for patch in queues.load(queue, one).patches:
            if stem == patch.stem or name == patch.name:
                return one, patch
    where = release or (", ".join(queue.releases) or "no release")
    raise UsageError(
        f"queue {queue.name} has no patch {name}",
        why=f"the series for {where} was looked through",
        mend=f"put the patch's name into {queue.folder}/RELEASE/series",
    )


def _back(queue: queues.Queue, release: str, patch: Patch, store: releases.Store) -> Back:
    """Return the patch on the release with the patches below it."""
    tree: dict[str, apply.File | None] = {}

    def file(path: str) -> apply.File | None:
        if path not in tree:
            tree[path] = store.read_many(release, (path,)).get(path)
        return tree[path]

    for one in queues.load(queue, release).patches:
        if one.name == patch.name:
            break
        done = apply.apply_patch(one, file)
        if isinstance(done, apply.PatchRejected):
            raise _unfit(one, queue, release, done.message)
        tree.update(done.after)

    def read(path: str) -> bytes | None:
        found = file(path)
        return found and found[0]

    listing = store.installed(release)
    back = Back(draft.forward(patch), file, release, read, listing=listing)
    if isinstance(back.whole, str):
        raise _unfit(patch, queue, release, back.whole)
    return back


def _unfit(patch: Patch, queue: queues.Queue, release: str, why: str) -> PatchqError:
    return PatchqError(
        f"{patch.name} does not apply to {queue.distribution} {release}",
        why=why,
        mend=f"patchq lint --queue {queue.folder} --release {release}",
    )


def _headed(found: draft.Draft, source: str) -> bytes:
    """Return the draft with what is to be known of it, as comments."""
    lines = [f"# Drafted by `patchq sketch` from {source}: edit it to say what the patch is for."]
    lines += [f"# {_bare(guard)}" for guard in found.bare]
    return "\n".join([*lines, ""]).encode(errors="surrogateescape") + found.text


def _bare(guard: Guard) -> str:
    piece = guard.piece
    place = f"{piece.path}, line {piece.line}" if piece.line else piece.path
    return f"Not guarded: {piece}, {place}: {guard.nature or 'say what must be true with it'}"


def _report(
    queue: queues.Queue,
    release: str,
    patch: Patch,
    text: bytes,
    guards: tuple[Guard, ...],
    written: Path | None,
) -> Report:
    bare = [guard for guard in guards if not guard.by]
    shown = text.decode(errors="surrogateescape")
    notes = [_bare(guard) for guard in bare]
    document = {
        "verb": "sketch",
        "queue": queue.name,
        "release": release,
        "patch": patch.name,
        "sketch": shown,
        "hunks": [guard.to_json() for guard in guards],
        "written": None if written is None else str(written),
    }
    lines = tuple(shown.rstrip("\n").split("\n"))
    if written is not None:
        lines = (f"{written} written; {len(guards) - len(bare)} of {len(guards)} hunks guarded",)
    return Report(lines, tuple(notes), document, ExitCode.FAILED if bare else ExitCode.DONE)
