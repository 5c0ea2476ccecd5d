"""Whether two patches, or an edit and a patch, touch the same lines of a common base.

The patches of one series have different bases. `patchq.engine.traces` maps the lines of each
down through the patches below it to the pristine file; there `relate` compares them.
"""

from __future__ import annotations

import difflib
import enum
from collections.abc import Iterable
from dataclasses import dataclass

from patchq.engine import lines
from patchq.engine.traces import Touch
from patchq.model import FileDiff


class Word(enum.Enum):
    """How two patches of a file lie to each other."""

    OVERLAP = "overlap"
    CLOSE = "too close"
    APART = "apart"


@dataclass(frozen=True, slots=True)
class Relation:
    """How two touches of a file lie to each other.

    `gap` is the number of lines between them, None where one changes no lines. `lines`:
    for each the changed lines that say so: those that overlap, else the nearest; none
    where the file as a whole is meant.
    """

    word: Word
    gap: int | None
    lines: tuple[tuple[range, ...], tuple[range, ...]]

    @property
    def clear(self) -> bool:
        """True where either patch can be put on top of the other, with the same result."""
        return self.word is Word.APART

    def __str__(self) -> str:
        """Return the word, and the gap where there is one."""
        word: str = self.word.value
        if self.word is Word.OVERLAP:
            return word if self.lines[0] else f"{word} (of the file as a whole)"
        if self.gap is None:
            return word
        count = "1 line" if self.gap == 1 else f"{self.gap} lines"
        more = ", within the context" if self.word is Word.CLOSE else ""
        return f"{word} ({count}{more})"


def relate(one: Touch, other: Touch) -> Relation:
    """Return how two patches of one file, of different queues, lie to each other.

    They overlap where they change the same lines, or put lines into the same place;
    they are too close where one changes lines that are context of the other. Neither
    kind can be put on top of the other.
    """
    if one.whole or other.whole or (one.mode and other.mode):
        return Relation(Word.OVERLAP, 0, ((), ()))
    pairs = [(a.lines, b.lines) for a in one.edits for b in other.edits]
    same = [(a, b) for a, b in pairs if meet(a, b)]
    if same:
        return Relation(
            Word.OVERLAP, 0, (_ordered(a for a, _ in same), _ordered(b for _, b in same))
        )
    if not pairs:
        return Relation(Word.APART, None, ((), ()))
    a, b = min(pairs, key=lambda pair: _gap(*pair))
    close = any(_inside(span, edit.lines) for span in one.spans for edit in other.edits)
    close = close or any(_inside(span, edit.lines) for span in other.spans for edit in one.edits)
    return Relation(Word.CLOSE if close else Word.APART, _gap(a, b), ((a,), (b,)))


def meet(one: range, other: range) -> bool:
    """Return whether two edits have a line in common, or one comes at the border of the other."""
    if len(one) and len(other):
        return one.start < other.stop and other.start < one.stop
    return one.start <= other.stop and other.start <= one.stop


def named(places: tuple[range, ...]) -> str:
    """Return ranges in words with a blank before them, lines counted from 1; empty for none.

    Example:
        >>> named((range(2, 5), range(8, 9))), named((range(3, 4),)), named((range(4, 4),))
        (' lines 3-5, 9', ' line 4', ' after line 4')
    """
    if not places:
        return ""
    words = ", ".join(_word(place) for place in places)
    if len(places) == 1 and len(places[0]) < 2:
        return " " + words if " " in words else f" line {words}"
    return f" lines {words}"


def _word(place: range) -> str:
    if not place:
        return f"after line {place.start}" if place.start else "before line 1"
    if len(place) == 1:
        return str(place.stop)
    return f"{place.start + 1}-{place.stop}"


def _ordered(places: Iterable[range]) -> tuple[range, ...]:
    return tuple(sorted(dict.fromkeys(places), key=lambda place: (place.start, place.stop)))


def _gap(one: range, other: range) -> int:
    return max(other.start - one.stop, one.start - other.stop)


def _inside(span: range, edit: range) -> bool:
    """Return whether an edit changes a line of a hunk, or comes between two of them."""
    return edit.start < span.stop and span.start < edit.stop


def edited(base: bytes, now: bytes) -> list[range]:
    """Return the lines of `base` (0-based) that `now` changed; an insertion is an empty range."""
    matcher = difflib.SequenceMatcher(None, lines.split(base), lines.split(now), autojunk=False)
    return [range(i, j) for tag, i, j, _, _ in matcher.get_opcodes() if tag != "equal"]


def changed(diff: FileDiff) -> list[range]:
    """Return the lines of the base (0-based) that a diff removes or puts lines between."""
    out = []
    for hunk in diff.hunks:
        at = max(hunk.old_start - 1, 0) if hunk.old_count else hunk.old_start
        start: int | None = None
        for mark, _ in hunk.lines:
            if mark == " ":
                if start is not None:
                    out.append(range(start, at))
                    start = None
                at += 1
                continue
            start = at if start is None else start
            at += mark == "-"
        if start is not None:
            out.append(range(start, at))
    return out


def overlaps(base: bytes, now: bytes, diff: FileDiff) -> bool:
    """True where an edit of `base` touches or borders on lines that `diff` changes.

    Example:
        >>> from patchq.engine.diff import parse
        >>> text = b"--- a/f\\n+++ b/f\\n@@ -1,2 +1,2 @@\\n-a\\n+A\\n b\\n"
        >>> one = parse(text, name="x.patch")[1][0]
        >>> overlaps(b"a\\nb\\n", b"Z\\nb\\n", one)
        True
        >>> overlaps(b"a\\nb\\nc\\n", b"a\\nb\\nX\\n", one)
        False
    """
    mine = changed(diff)
    return any(meet(edit, own) for edit in edited(base, now) for own in mine)
