"""Comments and blank lines, merged three ways; none that a side added is lost."""

from __future__ import annotations

from patchq.engine import merge
from patchq.engine.structural.nodes import COMMENT
from patchq.engine.structural.notes import Notes


def above(base: str, ours: str, theirs: str, notes: Notes) -> str:
    """Return the blank and comment lines above a statement.

    Example:
        >>> above("", "# a\\n", "# b\\n", Notes())
        '# a\\n# b\\n'
    """
    bare = [_bare(one) for one in (base, ours, theirs)]
    if bare[0] == bare[2] or bare[1] == bare[2]:
        return ours
    if bare[0] == bare[1]:
        return theirs
    found: list[str] = []
    sides = ["".join(row.strip() + "\n" for row in one) for one in bare]
    indent = _indent(ours) or _indent(theirs)
    for region in merge.merge(*[side.encode() for side in sides]).regions:
        rows = [row.decode().rstrip("\n") for row in region.lines]
        if region.side == "conflict":
            was, mine, other = (
                [row.decode().rstrip("\n") for row in part]
                for part in (region.base, region.ours, region.theirs)
            )
            new = [row for row in other if row and row not in mine and row not in was]
            if new and any(row and row not in was for row in mine):
                notes.flag("both sides changed the comments here", new[0])
            rows = mine + new
        found += rows
    return "".join((indent + row if row else "") + "\n" for row in found)


def beside(base: str, ours: str, theirs: str) -> str:
    """Return what follows a line: spaces, a comment, the line end.

    Example:
        >>> beside("  # a\\n", "\\n", "  # a b\\n")
        '  # a b\\n'
    """
    had, mine, other = (COMMENT.findall(one) for one in (base, ours, theirs))
    if had == other or mine == other:
        return ours
    if had == mine or not mine:
        return theirs
    if not other:
        return ours
    new = [one for one in other if one not in mine]
    last: str = mine[-1]
    spaces, _, end = ours.partition(last)
    return spaces + last + "".join(f"  {one}" for one in new) + end


def _bare(text: str) -> list[str]:
    return [row.strip() for row in text.splitlines()]


def _indent(text: str) -> str:
    for row in text.splitlines():
        if row.strip():
            return row[: len(row) - len(row.lstrip())]
    return ""
