"""Where lines that may stand at several places are shown: git's indent heuristic.

Lines that were put in, or taken out, can often be said to be others: where what stands
below them begins as they do. git (xdiff's `measure_split` and `score_add_split`, with its
weights, found by Michael Haggerty on a corpus) shows those that begin and end where a
reader expects it, at blank lines and at an indentation that falls back.
"""

from __future__ import annotations

from collections.abc import Sequence

from patchq.engine.alignment import Change

# As far as git looks, in lines.
_FARTHEST = 100
_MOST_BLANKS = 20
_NONE = -1


def slid(change: Change, lines: tuple[Sequence[bytes], Sequence[bytes]], floor: int) -> Change:
    """Return a change of two texts, with lines put in or taken out where they read best.

    A change that does both stays. It ends where it is or higher, and below line `floor` of
    the first text, where the change above it ends.
    """
    a0, a1, b0, b1 = change
    if (a0 == a1) == (b0 == b1):
        return change
    text = lines[0] if a1 > a0 else lines[1]
    start, stop = (a0, a1) if a1 > a0 else (b0, b1)
    most = min(a0 - floor, _FARTHEST)
    best, least = 0, _split(text, stop, start)
    for up in range(1, most + 1):
        if text[start - up] != text[stop - up]:
            break
        score = _split(text, stop - up, start - up)
        if _worse(least, score):
            best, least = up, score
    return Change(a0 - best, a1 - best, b0 - best, b1 - best)


def _worse(one: tuple[int, int], other: tuple[int, int]) -> bool:
    """Return whether another place reads better than one; of equals the lower stays."""
    more = (one[0] > other[0]) - (one[0] < other[0])
    return 60 * more + one[1] - other[1] > 0


def _split(text: Sequence[bytes], stop: int, start: int) -> tuple[int, int]:
    """Return indentation and penalty of lines that begin at `start` and end before `stop`."""
    one, two = _score(text, stop), _score(text, start)
    return one[0] + two[0], one[1] + two[1]


def _score(text: Sequence[bytes], at: int) -> tuple[int, int]:
    indent = _indent(text[at]) if at < len(text) else _NONE
    above, blanks = _next(text, range(at - 1, -1, -1))
    below, more = _next(text, range(at + 1, len(text)))
    penalty = (above == _NONE and blanks == 0) + 21 * (at >= len(text))
    after = 1 + more if indent == _NONE else 0
    total = blanks + after
    penalty += -30 * total + 6 * after
    indent = below if indent == _NONE else indent
    if _NONE in (indent, above) or indent == above:
        return indent, penalty
    if indent > above:
        return indent, penalty + (10 if total else -4)
    if below > indent:
        return indent, penalty + (17 if total else 24)
    return indent, penalty + (17 if total else 23)


def _next(text: Sequence[bytes], places: range) -> tuple[int, int]:
    """Return the indentation of the next line that is not blank, and the blank ones before it."""
    blanks = 0
    for at in places:
        indent = _indent(text[at])
        if indent != _NONE:
            return indent, blanks
        blanks += 1
        if blanks == _MOST_BLANKS:
            return 0, blanks
    return _NONE, blanks


def _indent(line: bytes) -> int:
    """Return a line's indentation in columns, tabs to eight; -1 for a blank one."""
    bare = line.lstrip(b" \t\r\f\v\n")
    if not bare:
        return _NONE
    return len(line[: len(line) - len(bare)].expandtabs(8))
