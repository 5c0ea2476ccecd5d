"""shell: a distribution's text files are brought to a copy, and what became of them goes live.

The patch's file is written first, then one transaction puts the files and the patch's record
there, as with the other verbs. Cut short in between, the same command makes the same files of
what is there still, and finishes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from patchq import standing
from patchq.agent import protocol
from patchq.conversation import desk, look, verify, view
from patchq.conversation.commit import Ground
from patchq.conversation.desk import Desk, File
from patchq.editing import basing, formed, making, refreshing
from patchq.editing.formed import state_of
from patchq.engine import patchtext
from patchq.errors import ExitCode, PatchqError, QuiltError
from patchq.model import AppliedPatch, FileState, PathChange, sha256
from patchq.queue import editing
from patchq.report import Report
from patchq.transport.channel import Conversation

# Bytes of files in one answer, by what RECORD says of their sizes; of one file that is text;
# and of all: a conversation takes no more.
_AT_ONCE, _LARGEST, _MOST = 16 << 20, 8 << 20, 200 << 20

# Takes a file of the environment: its path, its bytes, whether it can be executed.
Put = Callable[[str, bytes, bool], None]


def bring(aim: view.Aim, ground: Ground, put: Put) -> Conversation[Report]:
    """Give every text file of the distribution to `put`; the report says of which patch.

    A plain tree is here, and is copied as it is: nothing of it is given.

    Raises:
        PatchqError: no patch is on, or the distribution is too large.
    """
    at = yield from desk.sit(aim, ground)
    patch = at.applied(None)
    notes: tuple[str, ...] = ()
    if not making.position(at, patch):
        notes = (f"{_changed(patch)}: only what makes the same of it will be taken",)
    editing.check(at.seen.queue, patch.release)
    document = {
        "verb": "shell",
        "queue": at.seen.queue.name,
        "release": patch.release,
        "patch": patch.patch,
        "site": at.survey.site,
    }
    if at.seen.tree:
        return Report((), notes, document)
    sizes = yield from _sizes(at)
    large = [path for path, size in sizes.items() if size > _LARGEST]
    for paths in _batches({path: sizes[path] for path in sizes if path not in large}):
        want = view.Want(True, extra=paths, more=("patches",))
        survey = (yield from look.again(aim, at.seen, want)).survey
        for path in paths:
            state = survey.files[path].state
            if state.sha256 is not None:
                put(path, survey.contents[state.sha256], state.executable)
    left = (f"File {path} is too large for a patch, and is not in the copy" for path in large)
    return Report((), (*notes, *left), document)


def _sizes(at: Desk) -> Conversation[dict[str, int]]:
    """Return the text files of the distribution, those too that RECORD does not list."""
    request = at.aim.request(
        "hash", at.seen.queue.distribution, skip=list(verify.BINARIES), known=[], recent=True
    )
    reply = yield request
    ok = reply.message["ok"]
    rows = verify.rows(reply.blobs.get(ok["record"] or ""), at.survey.site)
    sizes = {path: row.size or 0 for path, row in rows.items()}
    sizes.update(dict.fromkeys(ok["added"], 0))
    texts = {path: size for path, size in sizes.items() if is_text(path)}
    if sum(texts.values()) > _MOST:
        raise PatchqError(
            f"{at.seen.queue.distribution} is too large for a copy",
            why=f"its text files have {sum(texts.values()) >> 20} MB; {_MOST >> 20} are taken",
            mend="patchq add FILE...   # then edit them in their place, and: patchq refresh",
        )
    return texts


def is_text(path: str) -> bool:
    """Return whether a path can be that of a file in a patch, by its name."""
    return protocol.unsafe(path) is None and not path.endswith(verify.BINARIES)


def _batches(sizes: Mapping[str, int]) -> Iterator[tuple[str, ...]]:
    batch: list[str] = []
    room = _AT_ONCE
    for path, size in sizes.items():
        if batch and size > room:
            yield tuple(batch)
            batch, room = [], _AT_ONCE
        batch.append(path)
        room -= size
    if batch:
        yield tuple(batch)


def take(
    aim: view.Aim,
    ground: Ground,
    new: Mapping[str, File | None],
    old: Mapping[str, FileState],
) -> Conversation[Report]:
    """Put files into the environment and into the top patch; None takes one away.

    `old` says what the files were when they were brought.

    Raises:
        PatchqError: a file was changed there since, or can not be part of the patch.
    """
    at = yield from desk.sit(aim, ground, new)
    patch = at.applied(None)
    same = making.position(at, patch)
    added = [path for path in new if not desk.has(patch, path)]
    _check(at, patch, new, old)
    lines = [f"File {path} added to patch {patch.patch}" for path in added]
    document = {
        "verb": "shell",
        "queue": at.seen.queue.name,
        "patch": patch.patch,
        "files": list(new),
        "added": added,
    }
    if ground.dry_run:
        return Report(tuple(_would(new, old)), (), document)
    before, after = yield from _sides(at, patch, new)
    refreshing.check_text(before, after)
    changes = tuple(PathChange(p, state_of(before[p]), state_of(after[p])) for p in after)
    text = formed.written(at, patch, before, after, formed.How())
    if not same and refreshing.text_of(at, patch) != text:
        raise PatchqError(
            _changed(patch),
            why="a refresh would write over that",
            mend=f"patchq refresh -f {patch.patch}   # or, without the edits: patchq pop -a",
        )
    notes = yield from basing.saved(at, replace(patch, changes=changes), text)
    yield from _live(at, patch, changes, text, before, after)
    warnings = refreshing.spaced(at, before, after, False)
    empty = all(change.before == change.after for change in changes)
    word = f"{'Nothing in' if empty else 'Refreshed'} patch {patch.patch}"
    return Report((*lines, word), notes, document, warnings=tuple(warnings))


def _sides(
    at: Desk, patch: AppliedPatch, new: Mapping[str, File | None]
) -> Conversation[tuple[Mapping[str, File | None], Mapping[str, File | None]]]:
    """Return all files of the patch as they are below it, and as they are to be."""
    paths = list(dict.fromkeys((*(change.path for change in patch.changes), *new)))
    index = at.stack.index(patch)
    before = yield from desk.texts(at, index, paths)
    above = [path for path in paths if path not in new and at.above(patch, path) is not None]
    kept = yield from desk.texts(at, index + 1, above)
    return before, {
        path: new[path] if path in new else kept[path] if path in kept else at.now(path)
        for path in paths
    }


def _check(
    at: Desk, patch: AppliedPatch, new: Mapping[str, File | None], old: Mapping[str, FileState]
) -> None:
    """Raise where a file is not what was brought, or can not be given to the patch."""
    for path in new:
        if standing.live(at.survey, path) != old[path]:
            raise PatchqError(
                f"{path} was changed in {at.survey.site} while the command ran",
                why="somebody else wrote to it meanwhile",
                mend="patchq shell ...   # again, on what is there now",
            )
        above = at.above(patch, path)
        unfit = making.unfit(at, patch, path, False)
        if above is not None and desk.has(patch, path):
            unfit = f"File {path} modified by patch {above.patch}", ExitCode.FAILED
        if unfit is not None and unfit[1] != ExitCode.NOTHING_TO_DO:
            raise QuiltError(
                unfit[0],
                why="so nothing of what the command made went live",
                mend="patchq files -v -a   # which patch has which file",
            )


def _would(new: Mapping[str, File | None], old: Mapping[str, FileState]) -> Iterator[str]:
    for path, file in new.items():
        verb = "remove" if file is None else "make" if old[path].sha256 is None else "change"
        yield f"Would {verb} {path}"


def _live(
    at: Desk,
    patch: AppliedPatch,
    changes: tuple[PathChange, ...],
    text: bytes,
    before: Mapping[str, File | None],
    after: Mapping[str, File | None],
) -> Conversation[None]:
    """Change the environment by one transaction: its files, and what is recorded of the patch."""
    record = text
    if at.seen.tree:
        real = [c.path for c in changes if c.before != c.after]
        record = patchtext.patch(
            b"", {p: before[p] for p in real}, {p: after[p] for p in real}, {}
        )
    fresh = replace(patch, changes=changes, sha256=sha256(record), forced=False)
    steps = [refreshing.taken(at, patch, c, before[c.path], after[c.path]) for c in changes]
    blobs = making.contents(at, steps, [*before.values(), *after.values()])
    blobs[fresh.sha256] = record
    stack = desk.replaced(at.stack, patch, fresh)
    yield from desk.settle(at, "shell", steps, stack, blobs, {"shell": (patch.patch,)})


def _changed(patch: AppliedPatch) -> str:
    return f"Patch {patch.patch} was changed in the queue after it was applied here"
