"""Three-way merge of texts by lines, where the base of both sides is known.

What one side changed is taken; what both changed alike is taken once; changes of
both that overlap or touch are a conflict. git-merge-file(1) says the same, and is
held against this in the tests. Merges that look into Python are
`patchq.engine.structural`'s; which road is taken is decided in `patchq.engine.merging`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from patchq.engine import alignment, lines
from patchq.engine.alignment import Change

Side = Literal["base", "ours", "theirs", "both", "conflict"]
Lines = tuple[bytes, ...]
_Items = Sequence[Hashable]
_Texts = tuple[_Items, _Items, _Items]
_MARKERS = b"<<<<<<<", b"|||||||", b"=======", b">>>>>>>"


@dataclass(frozen=True, slots=True)
class Region:
    """Lines that one side changed, or none, or both; `line` is where it is in ours, from 1."""

    side: Side
    base: Lines
    ours: Lines
    theirs: Lines
    line: int

    @property
    def lines(self) -> Lines:
        """The lines of the merged text; none for a conflict."""
        if self.side == "conflict":
            return ()
        return self.theirs if self.side == "theirs" else self.ours


@dataclass(frozen=True, slots=True)
class Span:
    """A part of a merge: the first item and the one behind the last, on each side."""

    side: Side
    base: tuple[int, int]
    ours: tuple[int, int]
    theirs: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Merged:
    """A merge: its regions in the order of the text."""

    regions: tuple[Region, ...]

    @property
    def conflicts(self) -> tuple[Region, ...]:
        """The regions that both sides changed, each in its own way."""
        return tuple(region for region in self.regions if region.side == "conflict")

    @property
    def text(self) -> bytes | None:
        """The merged text; None where there is a conflict."""
        if self.conflicts:
            return None
        return b"".join(line for region in self.regions for line in region.lines)

    def render(self, labels: tuple[str, str, str]) -> bytes:
        """Return the text with conflicts marked as ``git merge-file --diff3`` does.

        `labels` name ours, base and theirs.
        """
        crlf = any(line.endswith(b"\r\n") for x in self.regions for line in x.ours[:1])
        end = b"\r\n" if crlf else b"\n"
        out: list[bytes] = []
        for region in self.regions:
            out += region.lines
            if region.side == "conflict":
                out += _marked(region, [lines.encode(label) for label in labels], end)
        return b"".join(out)


def merge(base: bytes, ours: bytes, theirs: bytes) -> Merged:
    r"""Merge what `ours` and `theirs` each made of `base`.

    Example:
        >>> merge(b"1\n2\n3\n", b"0\n1\n2\n3\n", b"1\n2\n4\n").text
        b'0\n1\n2\n4\n'
        >>> merge(b"1\n", b"2\n", b"3\n").conflicts[0].theirs
        (b'3\n',)
    """
    one, two, three = lines.split(base), lines.split(ours), lines.split(theirs)
    return Merged(
        tuple(
            Region(
                span.side,
                tuple(one[slice(*span.base)]),
                tuple(two[slice(*span.ours)]),
                tuple(three[slice(*span.theirs)]),
                span.ours[0] + 1,
            )
            for span in spans(one, two, three)
        )
    )


def spans(
    base: Sequence[Hashable], ours: Sequence[Hashable], theirs: Sequence[Hashable]
) -> Iterator[Span]:
    """Yield which side has which items, for items of any kind, in order.

    Example:
        >>> [span.side for span in spans("abc", "xbc", "aby")]
        ['ours', 'base', 'theirs']
    """
    texts = base, ours, theirs
    one, two = alignment.changes(base, ours), alignment.changes(base, theirs)
    at = mine = other = 0
    for group_one, group_two in _grouped(one, two, texts):
        group = [*group_one, *group_two]
        start, stop = min(c.a0 for c in group), max(c.a1 for c in group)
        same = start - at
        if same:
            yield Span("base", (at, start), (mine, mine + same), (other, other + same))
        at, mine, other = start, mine + same, other + same
        my_stop = mine + stop - start + _growth(group_one)
        other_stop = other + stop - start + _growth(group_two)
        alike = list(ours[mine:my_stop]) == list(theirs[other:other_stop])
        side: Side = "ours" if not group_two else "theirs" if not group_one else "both"
        if side == "both" and not alike:
            side = "conflict"
        yield Span(side, (start, stop), (mine, my_stop), (other, other_stop))
        at, mine, other = stop, my_stop, other_stop
    if at < len(base):
        rest = len(base) - at
        yield Span("base", (at, len(base)), (mine, mine + rest), (other, other + rest))


def _growth(group: list[Change]) -> int:
    return sum(change.b1 - change.b0 - change.a1 + change.a0 for change in group)


def _grouped(
    one: list[Change], two: list[Change], texts: _Texts
) -> Iterator[tuple[list[Change], list[Change]]]:
    """Yield the changes that overlap or touch together, each side's in its own list."""
    group: tuple[list[Change], list[Change]] = ([], [])
    end = i = j = 0
    while i < len(one) or j < len(two):
        mine, other = one[i : i + 1], two[j : j + 1]
        if mine and other and _same(mine[0], other[0], texts):
            if group != ([], []):
                yield group
            yield mine, other
            group, i, j = ([], []), i + 1, j + 1
            continue
        if mine and other and mine[0].a1 < other[0].a0:
            other = []
        elif mine and other and other[0].a1 < mine[0].a0:
            mine = []
        if group != ([], []) and min(c.a0 for c in (*mine, *other)) > end:
            yield group
            group = ([], [])
        for side, change in ((group[0], mine), (group[1], other)):
            side += [one for one in change if one not in side]
        end = max(c.a1 for c in (*group[0], *group[1]))
        first = min(c.a1 for c in (*mine, *other))
        i += bool(mine) and mine[0].a1 == first
        j += bool(other) and other[0].a1 == first
    if group != ([], []):
        yield group


def _same(mine: Change, other: Change, texts: _Texts) -> bool:
    """Return True where both sides made the same change."""
    if mine[:2] != other[:2]:
        return False
    return list(texts[1][mine.b0 : mine.b1]) == list(texts[2][other.b0 : other.b1])


def _marked(region: Region, labels: list[bytes], end: bytes) -> Iterator[bytes]:
    """Yield a conflict with its markers, each on a line of its own."""
    sides = region.ours, region.base, region.theirs, ()
    for marker, label, part in zip(_MARKERS, [*labels[:2], b"", labels[2]], sides, strict=True):
        yield marker + (b" " + label if label else b"") + end
        yield from part
        if part and not part[-1].endswith(b"\n"):
            yield end
