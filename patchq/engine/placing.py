r"""Find the places of hunks in a text, and put them there.

A hunk fits where its old lines stand byte for byte. The exact place comes first;
with `search` the one other place that fits, and more than one is "ambiguous".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from patchq.engine import lines
from patchq.model import Hunk

Reason = Literal["mismatch", "ambiguous", "absent", "exists"]


@dataclass(frozen=True, slots=True)
class Applied:
    """The new bytes, None for a file that is gone; per hunk, how many lines it had moved."""

    data: bytes | None
    offsets: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Rejected:
    """Why a diff does not fit. `hunk` counts from 1, and is 0 where no hunk is to blame."""

    hunk: int
    reason: Reason
    message: str


def place(hunks: tuple[Hunk, ...], text: bytes, *, search: bool = False) -> Applied | Rejected:
    """Return `text` with all hunks in their places, or the first that has none."""
    placing = _Placing(text, search)
    for number, hunk in enumerate(hunks, 1):
        rejected = placing.put(number, hunk)
        if rejected is not None:
            return rejected
    return Applied(b"".join((*placing.out, text[placing.done :])), tuple(placing.offsets))


class _Placing:
    """One text while hunks are put into it, first to last."""

    def __init__(self, text: bytes, search: bool) -> None:
        self.text, self.search = text, search
        self.out: list[bytes] = []
        self.offsets: list[int] = []
        # Bytes and lines of the text that are behind us.
        self.done = self.line = 0

    def put(self, number: int, hunk: Hunk) -> Rejected | None:
        """Put a hunk in its place, or return why there is none."""
        old = b"".join(text for mark, text in hunk.lines if mark != "+")
        new = b"".join(text for mark, text in hunk.lines if mark != "-")
        want = hunk.old_start - (hunk.old_count > 0)
        places = list(self._places(old, want) if old else self._insertion(want))
        places = [place for place in places if self._anchored(hunk, place[1] + len(old))]
        exact = [place for place in places if place[0] == want]
        if exact and (len(places) == 1 or not any(self.offsets)):
            line, start = exact[0]
        else:
            if len(places) > 1:
                where = ", ".join(str(line + 1) for line, _ in places[:5])
                return Rejected(number, "ambiguous", f"hunk {number} fits at the lines {where}")
            if not places:
                return self._mismatch(number, hunk, want)
            line, start = places[0]
        end = start + len(old)
        if new and not new.endswith(b"\n") and end < len(self.text):
            why = f"hunk {number} ends the file at line {line + hunk.old_count}; more lines follow"
            return Rejected(number, "mismatch", why)
        self.out += (self.text[self.done : start], new)
        self.offsets.append(line - want)
        self.done, self.line = end, line + hunk.old_count
        return None

    def _places(self, old: bytes, want: int) -> Iterator[tuple[int, int]]:
        """Yield (line, byte) of each place where the lines `old` stand: with search all of them.

        Counting newlines between finds is far cheaper than a list of lines.
        """
        text, at, line = self.text, self.done, self.line
        while (found := text.find(old, at)) >= 0:
            line += text.count(b"\n", at, found)
            if line > want and not self.search:
                return
            begins = found == 0 or text[found - 1 : found] == b"\n"
            whole = old.endswith(b"\n") or found + len(old) == len(text)
            if begins and whole and (line == want or self.search):
                yield line, found
                if not self.search:
                    return  # the rest of the text need not be looked through
            line += text[found : found + 1] == b"\n"
            at = found + 1

    def _insertion(self, want: int) -> Iterator[tuple[int, int]]:
        """Yield the place below line `want`; a hunk without old lines fits nowhere else."""
        head = self.text.split(b"\n", want)
        start = len(self.text) - len(head[-1])
        # git-apply(1): above line 1 there is only one place, and one hunk takes it.
        taken = want == 0 and bool(self.offsets)
        if len(head) == want + 1 and start >= self.done and not any(self.offsets) and not taken:
            yield want, start

    def _anchored(self, hunk: Hunk, end: int) -> bool:
        """Return whether a hunk may lie here, as GNU patch 2.7 has it, and git-apply(1) nearly.

        Less context below than above says that the file ends there.
        """
        above, below = _context(hunk.lines), _context(hunk.lines[::-1])
        return below >= above or end == len(self.text)

    def _mismatch(self, number: int, hunk: Hunk, want: int) -> Rejected:
        """Return the first line at a hunk's own place that is not what it expects."""
        found = lines.split(self.text)[want:]
        expected = [text for mark, text in hunk.lines if mark != "+"]
        where = "" if not self.search else "; it fits nowhere else"
        for at, text in enumerate(expected):
            there = found[at] if at < len(found) else None
            if there != text:
                shown = "the file ends there" if there is None else f"found {lines.shown(there)}"
                what = f"line {want + at + 1}: expected {lines.shown(text)}, {shown}"
                return Rejected(number, "mismatch", f"hunk {number} does not fit: {what}{where}")
        what = f"line {want + 1} is not where a hunk without context can go"
        if expected:
            last = want + len(expected)
            what = "it has less context below than above, as where a file ends; "
            what += f"more follows line {last}"
        return Rejected(number, "mismatch", f"hunk {number} does not fit: {what}{where}")


def _context(side: tuple[tuple[str, bytes], ...]) -> int:
    """Return how many lines at the start of `side` are context."""
    return next((at for at, (mark, _) in enumerate(side) if mark != " "), len(side))
