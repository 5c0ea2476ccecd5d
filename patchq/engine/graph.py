"""Which patches of a series need which below them, as quilt(1) graph asks it.

A patch needs the next one below it that has one of its files. With `context` it needs
those whose lines, with so many lines around them, overlap its own: each hunk is mapped
down through the patches between, to the text that the lower patch left. Of a file
that is created, deleted or renamed all lines are meant.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from patchq.engine import overlap, traces
from patchq.engine.traces import Run
from patchq.model import FileDiff, Patch


@dataclass(frozen=True, slots=True)
class Edge:
    """Patch `above` needs patch `below`, by their places in the series, for some files."""

    above: int
    below: int
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Level:
    """What one diff did to a file; `whole`: it made it, took it away or gave it its name."""

    patch: int
    runs: tuple[Run, ...]
    whole: bool
    mode: bool


@dataclass(slots=True)
class _File:
    """A file on its way up a series; `needs`: for each patch all that it needs for this file."""

    levels: list[_Level] = field(default_factory=list)
    needs: dict[int, set[int]] = field(default_factory=dict)


def edges(
    patches: Sequence[Patch], *, context: int | None = None, of: int | None = None
) -> tuple[Edge, ...]:
    """Return what needs what, ordered by the patch above, then the one below.

    A patch that is needed by way of another one for the same file has no edge for that
    file. With `of`, a place in the series, only its files count.

    Example:
        >>> one, two = (Patch(n, b"", b"", (FileDiff("f", "f"),)) for n in ("1", "2"))
        >>> edges([one, two])
        (Edge(above=1, below=0, files=('f',)),)
    """
    files: dict[str, _File] = {}
    found: dict[tuple[int, int], dict[str, _File]] = {}
    for place, patch in enumerate(patches):
        for diff in traces.effective(patch):
            for path, file in _touched(diff, files):
                for below in _needed(file, _level(place, diff), context):
                    found.setdefault((place, below), {}).setdefault(path, file)
                file.levels.append(_level(place, diff))
    if of is not None:
        mine = [f for f in _every(files, found) if any(one.patch == of for one in f.levels)]
        found = {
            pair: {path: file for path, file in named.items() if any(file is one for one in mine)}
            for pair, named in found.items()
        }
    return tuple(Edge(*pair, tuple(sorted(found[pair]))) for pair in sorted(found) if found[pair])


def reduced(every: Sequence[Edge]) -> tuple[Edge, ...]:
    """Return edges without those that follow from others.

    Example:
        >>> reduced([Edge(1, 0, ()), Edge(2, 0, ()), Edge(2, 1, ())])
        (Edge(above=1, below=0, files=()), Edge(above=2, below=1, files=()))
    """
    under: dict[int, set[int]] = {}
    for edge in every:
        under.setdefault(edge.above, set()).add(edge.below)
    reach: dict[int, set[int]] = {}
    for place in sorted(under):  # what is below has its own by then
        reach[place] = under[place].union(*(reach.get(one, set()) for one in under[place]))
    return tuple(
        edge
        for edge in every
        if not any(edge.below in reach.get(one, set()) for one in under[edge.above])
    )


def _touched(diff: FileDiff, files: dict[str, _File]) -> Iterator[tuple[str, _File]]:
    """Yield the files that a diff is about, and bring `files` to what it leaves."""
    name = diff.new or diff.old or ""
    if not diff.renamed:
        yield name, files.setdefault(name, _File())
        return
    assert diff.old is not None
    moved = files.pop(diff.old, None) or _File()
    yield diff.old, files.setdefault(diff.old, _File())  # the name is free from here on
    if name in files:
        yield name, files[name]
    files[name] = moved
    yield name, moved


def _level(place: int, diff: FileDiff) -> _Level:
    mode = diff.old_mode != diff.new_mode
    return _Level(place, tuple(traces.runs(diff.hunks)), diff.old != diff.new, mode)


def _needed(file: _File, top: _Level, context: int | None) -> Iterator[int]:
    """Yield the patches below that a patch needs for one file, from the nearest down."""
    reach = file.needs.setdefault(top.patch, set())
    spans = [_around(old, context or 0) for old, _ in top.runs]
    for level in reversed(file.levels):
        theirs = [_around(new, context or 0) for _, new in level.runs]
        meets = context is None or top.whole or level.whole or (top.mode and level.mode)
        meets = meets or any(overlap.meet(one, other) for one in spans for other in theirs)
        if meets and level.patch != top.patch and level.patch not in reach:
            yield level.patch
            reach |= {level.patch, *file.needs[level.patch]}
        spans = [traces.lowered(span, level.runs) for span in spans]


def _around(lines: range, context: int) -> range:
    return range(max(lines.start - context, 0), lines.stop + context)


def _every(
    files: dict[str, _File], found: dict[tuple[int, int], dict[str, _File]]
) -> Iterator[_File]:
    yield from files.values()
    for named in found.values():
        yield from named.values()
