"""Names that one side gave another name, everywhere.

A rename is no edit of the lines that say the name: the base and the other side are
read as if they had always said the new one. A name counts as renamed where the side
says the old one nowhere, the base said it more than once and the new one nowhere,
and every line that differs by names alone tells the same story.
"""

from __future__ import annotations

import difflib
import keyword
import re
from collections import Counter

from patchq.engine import alignment

_NAME = re.compile(r"[^\W\d]\w*")
_PIECE = re.compile(r"\w+|[^\w\s]")
_LINE = re.compile(r"\s*(?:from|import)\s")
# A line of an import, or of an import list.
_IMPORT = re.compile(r"\s*(?:from\s|import\s|\w+(?:\s+as\s+\w+)?,?\s*(?:\)\s*)?$)")
_SHORT = 3


def found(base: str, side: str) -> dict[str, str]:
    """Return the new name of every name that a side gave one.

    Example:
        >>> found("count = 1\\nuse(count)\\n", "total = 1\\nuse(total)\\n")
        {'count': 'total'}
    """
    one, two = base.splitlines(), side.splitlines()
    had, has = Counter(_NAME.findall(base)), Counter(_NAME.findall(side))
    gone = {name for name in had if had[name] > 1 and name not in has and len(name) >= _SHORT}
    come = {name for name in has if name not in had and not keyword.iskeyword(name)}
    if not gone or not come:
        return {}
    votes: dict[str, Counter[str]] = {}
    for was, now in _changed(one, two):
        if _IMPORT.match(was) or _IMPORT.match(now):
            continue
        old, new = _PIECE.findall(was), _PIECE.findall(now)
        if len(old) != len(new):
            continue
        pairs = {(x, y) for x, y in zip(old, new, strict=True) if x != y}
        if all(x in gone and y in come for x, y in pairs):
            for x, y in pairs:
                votes.setdefault(x, Counter())[y] += 1
    names = {old: max(new, key=new.__getitem__) for old, new in votes.items() if len(new) == 1}
    twice, rows = Counter(names.values()), set(two)
    return {
        old: new
        for old, new in names.items()
        if twice[new] == 1 and _imported(old, new, one, rows)
    }


def _imported(old: str, new: str, base: list[str], side: set[str]) -> bool:
    """Return False for names that are imported, but not from the same module."""
    lines = [row for row in base if _LINE.match(row) and old in _NAME.findall(row)]
    names = any(_LINE.match(row) and new in _NAME.findall(row) for row in side)
    return all(renamed(row, {old: new}) in side for row in lines) and bool(lines) == names


def renamed(text: str, names: dict[str, str]) -> str:
    """Return a text that says the new names."""
    if not names:
        return text
    return _NAME.sub(lambda match: names.get(match[0], match[0]), text)


def _changed(one: list[str], two: list[str]) -> list[tuple[str, str]]:
    """Return the lines that stand in each other's place."""
    out = []
    for change in alignment.changes(one, two):
        was, now = one[change.a0 : change.a1], two[change.b0 : change.b1]
        if len(was) == len(now):
            out += list(zip(was, now, strict=True))
        elif len(was) * len(now) < 400:
            for line in was:
                near = difflib.get_close_matches(line, now, 1, 0.8)
                out += [(line, one) for one in near]
    return out
