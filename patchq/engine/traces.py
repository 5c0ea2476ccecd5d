"""Where the patches of a series change a file, in lines of the pristine file.

The patches of one series have different bases: each is made on what the patches
below it leave. `trace` maps the lines of every hunk down through the hunks below
it, to the one text that all queues have in common. Line numbers are enough for
that: a series applies exactly, so no text is needed.

A line that a lower patch put in becomes the place where it was put; one that a lower
patch replaced becomes all lines that were replaced. Ranges are 0-based and half
open; an empty one is a place between lines.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from patchq.engine import apply
from patchq.model import FileDiff, Hunk, Patch

# One run of changed lines: where it is below the patch, and above it.
Run = tuple[range, range]


@dataclass(frozen=True, slots=True)
class Edit:
    """One run of changed lines; `delta` is how many lines it brings more than it takes."""

    lines: range
    delta: int


@dataclass(frozen=True, slots=True)
class Touch:
    """What one diff does to a file; `path` is the file's name in the pristine release.

    `spans` are its hunks with their context, in order. `whole`: the file is created,
    deleted or renamed, by this patch or below it. `mode`: its mode changes.
    """

    path: str
    edits: tuple[Edit, ...] = ()
    spans: tuple[range, ...] = ()
    whole: bool = False
    mode: bool = False


@dataclass(frozen=True, slots=True)
class _File:
    """A file on its way up a series: its pristine name, and the runs of each diff so far."""

    path: str
    levels: tuple[tuple[Run, ...], ...] = ()
    whole: bool = False


def effective(patch: Patch) -> tuple[FileDiff, ...]:
    """Return the diffs of a patch in the direction and order in which they are applied."""
    if not patch.reverse:
        return patch.diffs
    return tuple(apply.reversed_diff(diff) for diff in reversed(patch.diffs))


def trace(patches: Iterable[Patch]) -> tuple[tuple[Touch, ...], ...]:
    """Return per patch of a series one touch for each of its `effective` diffs.

    Example:
        >>> hunk = Hunk(1, 0, 2, 1, (("+", b"new"),))
        >>> one = Patch("1", b"", b"", (FileDiff("f", "f", hunks=(hunk,)),))
        >>> hunk = Hunk(4, 1, 4, 1, (("-", b"old"), ("+", b"NEW")))
        >>> two = Patch("2", b"", b"", (FileDiff("f", "f", hunks=(hunk,)),))
        >>> [[touch.edits for touch in some] for some in trace([one, two])]
        [[(Edit(lines=range(1, 1), delta=1),)], [(Edit(lines=range(2, 3), delta=0),)]]
    """
    files: dict[str, _File] = {}
    return tuple(tuple(_touches(effective(patch), files)) for patch in patches)


def by_path(touches: Iterable[Touch]) -> dict[str, Touch]:
    """Return a patch's touches with those of one file put together."""
    out: dict[str, Touch] = {}
    for touch in touches:
        had = out.get(touch.path, Touch(touch.path))
        out[touch.path] = Touch(
            touch.path,
            (*had.edits, *touch.edits),
            (*had.spans, *touch.spans),
            had.whole or touch.whole,
            had.mode or touch.mode,
        )
    return out


def shifted(patch: Patch, touches: Sequence[Touch], foreign: Iterable[Touch]) -> Patch:
    """Return a patch whose hunks say where their lines are above foreign patches.

    `touches` are the patch's own, `foreign` those of the other queues' patches below it,
    which must be clear of them: then each hunk moves by what lies before it.
    """
    below = tuple(foreign)
    diffs = []
    for diff, touch in zip(effective(patch), touches, strict=True):
        hunks = tuple(
            _moved(hunk, moves(span, touch.path, below))
            for hunk, span in zip(diff.hunks, touch.spans, strict=True)
        )
        diffs.append(replace(diff, hunks=hunks))
    return replace(patch, diffs=tuple(diffs), reverse=False)


def moves(span: range, path: str, foreign: Iterable[Touch]) -> int:
    """Return by how many lines foreign patches move a hunk at `span`."""
    return sum(
        edit.delta
        for touch in foreign
        if touch.path == path
        for edit in touch.edits
        if edit.lines.stop <= span.start
    )


def runs(hunks: Iterable[Hunk]) -> Iterator[Run]:
    """Yield the runs of changed lines; new starts are counted, as `apply` counts them."""
    shift = 0
    for hunk in hunks:
        at = start = _span(hunk).start
        fresh = 0
        for mark, _ in (*hunk.lines, (" ", b"")):
            if mark == "+":
                fresh += 1
            elif mark == "-":
                at += 1
            else:
                if at > start or fresh:
                    yield range(start, at), range(start + shift, start + shift + fresh)
                    shift += fresh - (at - start)
                at += 1
                start, fresh = at, 0


def lowered(lines: range, level: Sequence[Run]) -> range:
    """Return lines of a file above one diff, given by its runs, as lines of the file below it."""
    if lines:
        return range(_late(lines.start, level), _early(lines.stop, level))
    ends = _early(lines.start, level), _late(lines.start, level)
    return range(min(ends), max(ends))


def _moved(hunk: Hunk, by: int) -> Hunk:
    return replace(hunk, old_start=hunk.old_start + by, new_start=hunk.new_start + by)


def _touches(diffs: Sequence[FileDiff], files: dict[str, _File]) -> Iterator[Touch]:
    """Yield what one patch touches; `files` is brought to what it leaves."""
    before, arrived = dict(files), set()
    for diff in diffs:
        name = diff.old or diff.new or ""
        # Renames are simultaneous: two files can trade names.
        source = before if diff.renamed and name in arrived else files
        file = source.get(name, _File(name))
        if diff.old is None:
            file = _File(name)
        if diff.old is None or diff.new is None or diff.renamed:
            file = replace(file, whole=True)
        touched = tuple(runs(diff.hunks))
        edits = tuple(Edit(_down(old, file), len(new) - len(old)) for old, new in touched)
        spans = tuple(_down(_span(hunk), file) for hunk in diff.hunks)
        mode = diff.old is not None and diff.new_mode is not None
        yield Touch(file.path, edits, spans, file.whole, mode and diff.old_mode != diff.new_mode)
        if diff.old is not None and diff.old != diff.new and diff.old not in arrived:
            files.pop(diff.old, None)
        if diff.new is not None:
            files[diff.new] = replace(file, levels=(*file.levels, touched))
            if diff.old != diff.new:
                arrived.add(diff.new)


def _span(hunk: Hunk) -> range:
    """Return the lines of a hunk below its patch, context and all."""
    start = hunk.old_start - (hunk.old_count > 0)
    return range(start, start + hunk.old_count)


def _down(lines: range, file: _File) -> range:
    """Return lines of a file as it is now as lines of the pristine one."""
    for level in reversed(file.levels):
        lines = lowered(lines, level)
    return lines


def _late(at: int, runs: Sequence[Run]) -> int:
    """Return where a border between lines is below; behind lines that went just there."""
    shift = 0
    for old, new in runs:
        if at < new.stop:
            return old.start if at > new.start else at - shift
        shift = new.stop - old.stop
    return at - shift


def _early(at: int, runs: Sequence[Run]) -> int:
    """Return where a border between lines is below; before lines that went just there."""
    shift = 0
    for old, new in runs:
        if at <= new.start:
            return at - shift
        if at < new.stop:
            return old.stop
        shift = new.stop - old.stop
    return at - shift
