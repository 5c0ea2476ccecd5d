"""Strings that both sides changed: by line where they have lines, else by word."""

from __future__ import annotations

import re

from patchq.engine import lines, merge
from patchq.engine.structural.notes import Notes
from patchq.engine.structural.sequences import Conflict

_PIECE = re.compile(r"\w+|\s+|[^\w\s]")
_LONG = 8


def merged(base: str, ours: str, theirs: str, notes: Notes) -> str:
    """Return a string with what both changed in it. Raises: Conflict."""
    if all("\n" in one for one in (base, ours, theirs)):
        found = merge.merge(*(lines.encode(one) for one in (base, ours, theirs)))
        out = []
        for region in found.regions:
            if region.side == "conflict":
                parts = [
                    lines.decode(b"".join(x)) for x in (region.base, region.ours, region.theirs)
                ]
                out.append(_words(parts[0], parts[1], parts[2], notes))
            else:
                out.append(lines.decode(b"".join(region.lines)))
        return "".join(out)
    return _words(base, ours, theirs, notes)


def _words(base: str, ours: str, theirs: str, notes: Notes) -> str:
    """Merge by words, and flag it; lines that both put in stand one after the other."""
    if not base.strip() and ours.endswith("\n") and theirs.endswith("\n"):
        notes.flag(
            "both sides put lines into a string at one place; the patch's stand last", theirs
        )
        return ours + theirs
    sides = [_PIECE.findall(one) for one in (base, ours, theirs)]
    if min(map(len, sides)) < _LONG:
        raise Conflict("both changed one string")
    out: list[str] = []
    for span in merge.spans(*sides):
        if span.side == "conflict":
            raise Conflict("both changed the same words of a string")
        out += (
            sides[2][slice(*span.theirs)] if span.side == "theirs" else sides[1][slice(*span.ours)]
        )
    text = "".join(out)
    notes.flag("both sides changed one string", text)
    return text
