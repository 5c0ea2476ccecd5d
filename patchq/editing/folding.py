"""fold: a patch is put on what is there now, and its files belong to the top patch.

As with quilt it is an edit: `refresh` puts it into the patch's file. A patch from elsewhere
has no known base, so the rules of `import` decide where it goes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from patchq import standing
from patchq.conversation import desk, view
from patchq.conversation.commit import Ground, Step
from patchq.conversation.desk import Desk, File
from patchq.editing import making, stock
from patchq.engine import landing, lines
from patchq.engine.locating import Failed
from patchq.errors import ExitCode
from patchq.model import FileState, PathChange, sha256
from patchq.queue import foreign, refitting
from patchq.queue.refitting import Chosen, Wish
from patchq.report import Report
from patchq.transport.channel import Conversation


@dataclass(frozen=True, slots=True)
class How:
    """The options of `fold`: `force` takes what fits of a patch that does not fit whole.

    `prefix` is the folder of a plain tree in which the names of the patch begin, with a slash.
    """

    wish: Wish
    force: bool = False
    quiet: bool = False
    prefix: str = ""


@dataclass(slots=True)
class _Folded:
    """What a patch makes of the files, and what is said of it, while it is put on them."""

    files: dict[str, File | None]
    lines: list[str]
    notes: list[str]
    failed: bool = False


def fold(aim: view.Aim, ground: Ground, data: bytes, how: How) -> Conversation[Report]:
    """Put a patch on the files as they are, and give them to the top patch.

    Raises:
        PatchqError: no patch is on, it does not fit, or a file belongs to a patch above.
    """
    at = yield from desk.sit(aim, ground)
    top = at.applied(None).patch
    chosen = yield from _chosen(at, data, how)
    paths = [how.prefix + path for path in chosen.paths]
    at = yield from desk.sit(aim, ground, paths)
    folded = _folded(at, chosen, how)
    changed = {
        path: file
        for path, file in folded.files.items()
        if FileState.of(*(file or (None,))) != standing.live(at.survey, path)
    }
    code = ExitCode.FAILED if folded.failed else ExitCode.DONE
    document = {
        "verb": "fold",
        "queue": at.seen.queue.name,
        "patch": top,
        "files": list(changed),
        "whole": not folded.failed,
    }
    said = () if how.quiet else tuple(folded.lines)
    done = Report(said, (*chosen.notes, *folded.notes), document, code)
    if ground.dry_run or not changed:
        return done
    held = at.applied(None)
    fresh = [path for path in changed if not desk.has(held, path)]
    if fresh:
        added = yield from making.add(aim, ground, fresh, None, False)
        if added.exit_code is not ExitCode.DONE:
            return replace(added, document=document)
        at = yield from desk.sit(aim, ground, paths)
    yield from _put(at, changed)
    return done


def _chosen(at: Desk, data: bytes, how: How) -> Conversation[Chosen]:
    """Return what of the patch is meant: on a plain tree all of it."""
    found = foreign.unnamed(data, "-")
    named = tuple(replace(one, name=one.name or "on stdin") for one in found.patches)
    found = replace(found, patches=named)
    if at.seen.tree:
        return refitting.all_of(found, how.wish, where=at.survey.site)
    release = at.applied(None).release
    shipped = yield from stock.shipped(at, release, [found])
    made = (change.path for one in at.stack for change in one.changes)
    where = f"{at.seen.queue.distribution} {release}"
    return refitting.choose(found, shipped.with_paths(made), how.wish, where=where)


def _folded(at: Desk, chosen: Chosen, how: How) -> _Folded:
    """Put the patches on the files in turn, in thought."""
    out = _Folded({}, [], [])

    def tree(path: str) -> File | None:
        path = how.prefix + path
        return out.files[path] if path in out.files else at.now(path)

    word = "would change" if at.ground.dry_run else "patching file"
    fuzz, reverse = how.wish.fuzz, how.wish.reverse
    for patch, sifted in chosen.meant:
        given, cured = refitting.diffs(chosen, patch, sifted)
        out.notes += cured
        landed = landing.land(given, tree, fuzz=fuzz, reverse=reverse)
        if landed.done is None:
            if not how.force:
                raise refitting.conflict(chosen, patch, landed, given, tree)
            out.failed = True
            _tell_failures(out, landed)
            part = landing.salvaged(given, tree, fuzz=fuzz, reverse=reverse)
            landed = landing.land(part, tree, fuzz=fuzz)
        for one in landed.files if landed.done is not None else ():
            out.lines.append(f"{word} {how.prefix}{one.path}")
            out.lines += one.moved
        after = landed.done.after if landed.done is not None else {}
        out.files.update({how.prefix + path: file for path, file in after.items()})
    return out


def _tell_failures(out: _Folded, landed: landing.Landing) -> None:
    """Say what does not fit, and show the hunks."""
    for one in landed.files:
        out.notes += [f"{one.path}: {why}" for why in one.failures]
        failed = [
            hunk
            for hunk, fate in zip(one.hunks, one.fates, strict=True)
            if isinstance(fate, Failed)
        ]
        for hunk in failed:
            rows = [f"{mark}{lines.decode(text).rstrip(chr(10))}" for mark, text in hunk.lines]
            out.notes += [f"@@ -{hunk.old_start},{hunk.old_count} @@", *rows]
        if failed:
            plural = "" if len(one.fates) == 1 else "s"
            out.notes.append(f"{len(failed)} out of {len(one.fates)} hunk{plural} FAILED")


def _put(at: Desk, changed: Mapping[str, File | None]) -> Conversation[None]:
    """Write the files; they are edits of the top patch until it is refreshed."""
    steps = [
        Step(PathChange(path, standing.live(at.survey, path), FileState.of(*(file or (None,)))))
        for path, file in changed.items()
    ]
    blobs: dict[str, bytes] = {sha256(file[0]): file[0] for file in changed.values() if file}
    blobs.update(making.contents(at, steps))
    held = at.applied(None)
    yield from desk.settle(at, "fold", steps, at.stack, blobs, {"fold": (held.patch,)})
