"""Which of two sides changed some words."""

from __future__ import annotations

from patchq.engine.structural.nodes import Item, comments, norm

Items = tuple[Item, ...]


def chosen(base: Items, ours: Items, theirs: Items) -> Items | None:
    """Return the side that alone changed something, comments counted; None where both did."""
    was, mine, other = norm(base), norm(ours), norm(theirs)
    had, have, got = comments(base), comments(ours), comments(theirs)
    if was == other and (had == got or have == got):
        return ours
    if was == mine and (had == have or have == got):
        return theirs
    return ours if mine == other and (have == got or had == got) else None
