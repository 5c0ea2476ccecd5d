r"""Find where the hunks of a foreign patch belong: exact place, offset, fuzz when asked for.

What fits is GNU patch 2.7's (patch.c, ``locate_hunk``): with fuzz, context lines are
dropped from the outer ends, from the longer end first; a hunk with less context on one
side lies at that end of the file. Which place is taken is not patch's: the exact one, or
the only other one. Where several fit it is a conflict, never a guess, and so is a hunk of
which fuzz leaves no line to look for. No text is changed here: `patchq.engine.landing`
does that.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from patchq.engine import lines
from patchq.model import Hunk

# Places that a message lists, and the most that are looked for.
_LISTED = 8


@dataclass(frozen=True, slots=True)
class Landed:
    """A hunk that has its place, `start` lines into the text; in the new one it begins at `line`.

    `offset` is how many lines it had moved, `fuzz` how much of its context did not count;
    `top` and `bottom` are the lines that were dropped for it.
    """

    start: int
    line: int
    offset: int = 0
    fuzz: int = 0
    top: int = 0
    bottom: int = 0


@dataclass(frozen=True, slots=True)
class Failed:
    """A hunk that has no place, or several: then `places` has their lines, from 1."""

    line: int
    why: str
    places: tuple[int, ...] = ()


Fate = Landed | Failed


def words(number: int, fate: Fate) -> str:
    """Return what GNU patch says of a hunk, empty for one that lies where it was made for.

    Example:
        >>> words(1, Landed(11, 12, 2, 1))
        'Hunk #1 succeeded at 12 with fuzz 1 (offset 2 lines).'
        >>> words(2, Failed(7, "why"))
        'Hunk #2 FAILED at 7.'
    """
    if isinstance(fate, Failed):
        return f"Hunk #{number} FAILED at {fate.line}."
    if not fate.offset and not fate.fuzz:
        return ""
    fuzz = f" with fuzz {fate.fuzz}" if fate.fuzz else ""
    plural = "" if fate.offset == 1 else "s"
    offset = f" (offset {fate.offset} line{plural})" if fate.offset else ""
    return f"Hunk #{number} succeeded at {fate.line}{fuzz}{offset}."


def locate(hunks: Sequence[Hunk], text: bytes, fuzz: int = 0) -> tuple[Fate, ...]:
    r"""Return where each hunk belongs in `text`; one that fails does not stop the others.

    Example:
        >>> hunk = Hunk(1, 1, 1, 1, (("-", b"1\n"), ("+", b"2\n")))
        >>> locate([hunk], b"0\n1\n")
        (Landed(start=1, line=2, offset=1, fuzz=0, top=0, bottom=0),)
    """
    search = _Search(text)
    fates = []
    for hunk in hunks:
        fate = search.fate(hunk, fuzz)
        if isinstance(fate, Landed):
            search.settle(hunk, fate)
        fates.append(fate)
    return tuple(fates)


class _Search:
    """One text while the places of its hunks are found, first to last."""

    def __init__(self, text: bytes) -> None:
        self.text = text
        self.lines = lines.split(text)
        self.starts = [0]
        for line in self.lines:
            self.starts.append(self.starts[-1] + len(line))
        # The lines up to here are settled; how far the last hunk had moved; lines gained.
        self.frozen = self.offset = self.gained = 0
        self.moved = False

    def settle(self, hunk: Hunk, fate: Landed) -> None:
        """Take note of a hunk that has its place."""
        below = _context(hunk.lines[::-1])
        self.frozen = max(self.frozen, fate.start + hunk.old_count - below)
        self.offset = fate.offset
        self.moved = self.moved or bool(fate.offset)
        self.gained += hunk.new_count - hunk.old_count

    def fate(self, hunk: Hunk, fuzz: int) -> Fate:
        """Return where a hunk belongs."""
        want = hunk.old_start - (hunk.old_count > 0)
        line = want + 1 + self.gained
        if not hunk.old_count:
            return self._insertion(hunk, want, line)
        above, below = _context(hunk.lines), _context(hunk.lines[::-1])
        for used in range(min(fuzz, max(above, below)) + 1):
            top, bottom = (used + side - max(above, below) for side in (above, below))
            if hunk.old_count <= max(top, 0) + max(bottom, 0):
                why = f"fuzz {used} leaves no line of it to look for"
                return Failed(line, f"{self._mismatch(hunk, want)}; {why}")
            found = self._places(hunk, want, top, bottom)
            if want in found and not self.moved:
                found = [want]
            if len(found) > 1:
                places = tuple(place + 1 for place in found)
                return Failed(line, f"it fits at the lines {_listed(places)}", places)
            if found:
                offset = found[0] - want
                dropped = max(top, 0), max(bottom, 0)
                return Landed(found[0], line + offset, offset, used, *dropped)
        why = self._mismatch(hunk, want)
        if below < above and self._finds_any(hunk):
            why = "it has less context below than above, as at the end of a file, and more follows"
        elif above < below and hunk.old_start <= 1 and self._finds_any(hunk):
            why = (
                "it has less context above than below, as where a file begins, and it is not there"
            )
        return Failed(line, why)

    def _insertion(self, hunk: Hunk, want: int, line: int) -> Fate:
        """Return the place of a hunk without old lines: only where it says, if nothing moved."""
        if self.moved or want < self.frozen or want > len(self.lines):
            why = "it has no context, and the lines around it are not where they were"
            return Failed(line, why)
        return Landed(want, line)

    def _places(self, hunk: Hunk, want: int, top: int, bottom: int) -> list[int]:
        """Return every line where a hunk fits; `top`, `bottom` below 0: only at that end."""
        old = [text for mark, text in hunk.lines if mark != "+"]
        first = max(top, 0)
        kept = old[first : len(old) - max(bottom, 0)]
        if top < 0 and hunk.old_start <= 1:
            return [0] if self._fits(0, kept) and self.frozen <= -top + len(old) else []
        if bottom < 0:
            start = len(self.lines) - len(old)
            there = start >= self.frozen and self._fits(start + first, kept)
            return [start] if there else []
        if want >= self.frozen and not self.moved and self._fits(want + first, kept):
            return [want]
        least = self.frozen + first
        return [place - first for place in self._finds(b"".join(kept), least)]

    def _fits(self, start: int, kept: list[bytes]) -> bool:
        return self.lines[start : start + len(kept)] == kept

    def _finds(self, kept: bytes, least: int) -> Iterator[int]:
        """Yield the first few lines, from `least` on, where these bytes stand as whole lines."""
        text, count = self.text, 0
        at = self.starts[least] if least < len(self.starts) else len(text)
        while count < _LISTED and (at := text.find(kept, at)) >= 0:
            line = bisect.bisect_left(self.starts, at)
            whole = kept.endswith(b"\n") or at + len(kept) == len(text)
            if self.starts[line] == at and whole:
                count += 1
                yield line
            at += 1

    def _mismatch(self, hunk: Hunk, want: int) -> str:
        """Return the first line that is not what a hunk expects, where it was made for."""
        place = max(want + self.offset, 0)
        expected = [text for mark, text in hunk.lines if mark != "+"]
        for at, text in enumerate(expected, place):
            there = self.lines[at] if at < len(self.lines) else None
            if there != text:
                found = "the file ends there" if there is None else f"found {lines.shown(there)}"
                return f"line {at + 1}: expected {lines.shown(text)}, {found}"
        return "what stands there was changed by the hunk above"

    def _finds_any(self, hunk: Hunk) -> bool:
        """Return whether the old lines of a hunk stand anywhere."""
        old = b"".join(text for mark, text in hunk.lines if mark != "+")
        return next(self._finds(old, self.frozen), None) is not None


def _context(side: Sequence[tuple[str, bytes]]) -> int:
    """Return how many lines at the start of `side` are context."""
    return next((at for at, (mark, _) in enumerate(side) if mark != " "), len(side))


def _listed(places: Sequence[int]) -> str:
    shown = ", ".join(map(str, places))
    return f"{shown} and perhaps more" if len(places) == _LISTED else shown
