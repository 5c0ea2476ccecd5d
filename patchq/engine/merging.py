"""The road of a merge: nothing to do, by lines, by structure, or a conflict.

Only what the three texts decide is merged. An open choice is made and said (`flags`);
what cannot be told is a conflict, with its reasons. A merge that does not hang together
(`patchq.engine.soundness`, and what the caller asks besides) is not taken: the next
road is tried, and the last one is a conflict.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from patchq.engine import lines, soundness
from patchq.engine import merge as textual
from patchq.engine.merge import Merged

Word = Literal["same", "theirs", "ours", "upstream", "text", "structural", "conflict"]
Judge = Callable[[bytes], Iterable[str]]
_PYTHON = (".py", ".pyi")
_NAME = re.compile(rb"[^\W\d]\w{2,}")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of three texts; `text` is None for a conflict.

    `word`: same (all are equal) · theirs (ours is the base) · ours (theirs is the
    base) · upstream (ours has what theirs did) · text (merged by lines) · structural ·
    conflict. `flags`: choices that were open, to be looked at. `reasons`: why it is a
    conflict, or why a merge by lines was not taken.
    """

    word: Word
    text: bytes | None
    flags: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()


def merge(
    base: bytes, ours: bytes, theirs: bytes, *, path: str, judge: Judge | None = None
) -> Outcome:
    r"""Merge what ours (the new release) and theirs (the patch) made of the base.

    `path` tells whether it is Python. `judge` returns why a merged text may not stay.

    Example:
        >>> merge(b"a = [1]\n", b"a = [1, 2]\n", b"a = [0, 1]\n", path="x.py").text
        b'a = [0, 1, 2]\n'
        >>> merge(b"1\n", b"2\n", b"3\n", path="x.txt").reasons
        ('line 1: both sides changed this line, each in its own way',)
    """
    if base == theirs:
        return Outcome("same" if ours == base else "ours", ours)
    if ours == base:
        return Outcome("theirs", theirs)
    if ours == theirs:
        return Outcome("upstream", ours)
    found = textual.merge(base, ours, theirs)
    python = path.endswith(_PYTHON)
    reasons: list[str] = []
    if found.text is not None:
        reasons = list(_by_lines(found, ours, theirs, python=python))
        reasons += judge(found.text) if judge else ()
        if not reasons:
            if found.text == ours:
                return Outcome("upstream", ours)
            flags = _reviewed((base, ours, theirs), found) if python else ()
            return Outcome("text", found.text, flags)
    elif not python:
        return Outcome("conflict", None, reasons=tuple(map(_overlap, found.conflicts)))
    if not python:
        return Outcome("conflict", None, reasons=tuple(reasons))
    return _structural((base, ours, theirs), tuple(reasons), judge)


def _by_lines(found: Merged, ours: bytes, theirs: bytes, *, python: bool) -> Iterable[str]:
    """Return why a merge by lines may not stay."""
    if not python or found.text is None or found.text == ours:
        return ()
    return (
        *soundness.misplaced(found, theirs, found.text),
        *soundness.faults(ours, theirs, found.text),
    )


def _reviewed(sides: tuple[bytes, bytes, bytes], found: Merged) -> tuple[str, ...]:
    """Return what changed under a patch that was merged by lines.

    Only where the patch's lines say a name that stands in lines which upstream changed.
    """
    said = _names(line for x in found.regions if x.side == "theirs" for line in x.theirs)
    changed = _names(line for x in found.regions if x.side == "ours" for line in x.base)
    if not said & changed:
        return ()
    from patchq.engine import structural

    text = found.text or b""
    return structural.reviewed(*(lines.decode(side) for side in (*sides, text)))


def _names(rows: Iterable[bytes]) -> set[bytes]:
    found = {name for row in rows for name in _NAME.findall(row)}
    return {name for name in found if not keyword.iskeyword(lines.decode(name))}


def _structural(
    sides: tuple[bytes, bytes, bytes], before: tuple[str, ...], judge: Judge | None
) -> Outcome:
    """Merge by structure, all three in the line ends of ours."""
    from patchq.engine import structural

    ours, crlf = sides[1], b"\r\n" in sides[1]
    if any(b"\r\n" in side for side in sides):
        if crlf and ours.count(b"\n") != ours.count(b"\r\n"):
            return Outcome("conflict", None, reasons=(*before, "lines of two kinds of ends"))
        sides = tuple(side.replace(b"\r\n", b"\n") for side in sides)  # type: ignore[assignment]
    found = structural.merge(*(lines.decode(side) for side in sides))
    if found.text is None:
        return Outcome("conflict", None, reasons=(*before, *found.reasons))
    text = lines.encode(found.text)
    if found.upstream:
        return Outcome("upstream", ours, found.flags, before)
    text = text.replace(b"\n", b"\r\n") if crlf else text
    wrong = [*soundness.faults(ours, sides[2], text), *(judge(text) if judge else ())]
    if wrong:
        return Outcome("conflict", None, reasons=(*before, *wrong))
    return Outcome("structural", text, found.flags, before)


def _overlap(region: textual.Region) -> str:
    many = max(len(region.ours), len(region.base), len(region.theirs)) > 1
    what = "these lines" if many else "this line"
    return f"line {region.line}: both sides changed {what}, each in its own way"
