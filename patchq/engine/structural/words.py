"""The words of one statement merged three ways, with brackets inside them.

A word that both changed, each in its own way, is a conflict; so are two words put in
at one place. Changes that only touch each other are made and flagged.
"""

from __future__ import annotations

from collections.abc import Sequence

from patchq.engine import alignment, merge
from patchq.engine.structural import brackets, quoted, sides
from patchq.engine.structural.nodes import Group, Item, norm, text
from patchq.engine.structural.notes import Notes
from patchq.engine.structural.sequences import Conflict
from patchq.engine.structural.tokens import Token

Items = tuple[Item, ...]


def merged(base: Items, ours: Items, theirs: Items, notes: Notes) -> Items:
    """Return the words of a merge. Raises: Conflict."""
    taken = sides.chosen(base, ours, theirs)
    if taken is not None:
        return taken
    names = _names((base, ours, theirs))
    found: list[Item] = []
    for span in merge.spans(*names):
        part = base[slice(*span.base)], ours[slice(*span.ours)], theirs[slice(*span.theirs)]
        if span.side == "base":
            found += [_one(*row, notes) for row in zip(*part, strict=True)]
        elif span.side == "conflict":
            found += _contested(part, notes)
        else:
            _untouched(part, span.side)
            found += part[2] if span.side == "theirs" else part[1]
    return tuple(found)


def _one(base: Item, ours: Item, theirs: Item, notes: Notes) -> Item:
    """Merge words that stand for each other: equal ones, brackets, or strings."""
    if isinstance(base, Group) and isinstance(ours, Group) and isinstance(theirs, Group):
        return brackets.merged(base, ours, theirs, notes, merged)
    if isinstance(base, Token) and isinstance(ours, Token) and isinstance(theirs, Token):
        if base.norm == ours.norm == theirs.norm:
            return ours if base.text == theirs.text else theirs
        if base.norm == theirs.norm or ours.norm == theirs.norm:
            return ours
        if base.norm == ours.norm:
            return Token(theirs.text, ours.before, theirs.kind)
        if base.kind == "string":
            return Token(
                quoted.merged(base.text, ours.text, theirs.text, notes), ours.before, "string"
            )
    raise Conflict(f"both changed {_quote((base,))}")


def _untouched(part: tuple[Items, Items, Items], side: merge.Side) -> None:
    """Refuse to take out brackets or strings that the other side changed inside."""
    base, ours, theirs = part
    other = {"ours": theirs, "theirs": ours}.get(side, base)
    for was, now in zip(base, other, strict=True):
        if was.norm != now.norm:
            raise Conflict(f"one side took out {_quote((was,))}, which the other changed")


def _names(three: tuple[Items, Items, Items]) -> tuple[list[str], list[str], list[str]]:
    """Return the items as they are compared, brackets and strings that pair by one name."""
    base = three[0]
    names = [[one.norm for one in side] for side in three]
    maps = [_pairs(base, side) for side in three[1:]]
    for number, found in enumerate(maps, 1):
        for at, to in found.items():
            one = base[at]
            if isinstance(one, Group) or one.kind == "string":
                names[number][to] = f"\x1b{at}"
    for at, one in enumerate(base):
        paired = any(at in found for found in maps)
        if paired and (isinstance(one, Group) or one.kind == "string"):
            names[0][at] = f"\x1b{at}"
    return names[0], names[1], names[2]


def _pairs(base: Items, side: Items) -> dict[int, int]:
    """Return which item of a side each of the base is; brackets pair by what they are for."""
    found = alignment.pairs([one.norm for one in base], [one.norm for one in side])
    loose = alignment.pairs(_loose(base), _loose(side))
    used = set(found.values())
    for at, to in sorted(loose.items()):
        if at in found or to in used or not isinstance(base[at], Group | Token):
            continue
        before = max((x for x in found if x < at), default=-1)
        after = min((x for x in found if x > at), default=len(base))
        low = found.get(before, -1)
        high = found.get(after, len(side))
        if low < to < high:
            found[at] = to
            used.add(to)
    return found


def _loose(side: Items) -> list[str]:
    """Return names by which brackets and strings pair: their kinds."""
    return [
        one.kind if isinstance(one, Group) or one.kind == "string" else one.norm for one in side
    ]


def _contested(part: tuple[Items, Items, Items], notes: Notes) -> Items:
    """Return what becomes of words that both changed. Raises: Conflict."""
    base, ours, theirs = part
    if norm(ours) == norm(theirs):
        return ours
    touching = _touching(base, ours, theirs)
    if touching is not None:
        notes.flag(
            f"both sides changed words next to each other: {_quote(touching)}", text(touching)
        )
        return touching
    raise Conflict(
        f"upstream made {_quote(base)} into {_quote(ours)}, the patch into {_quote(theirs)}"
    )


def _touching(base: Items, ours: Items, theirs: Items) -> Items | None:
    """Return both changes where they lie side by side and each leaves the other's words."""
    was = [one.norm for one in base]
    for first, second in ((ours, theirs), (theirs, ours)):
        one, two = [x.norm for x in first], [x.norm for x in second]
        # The first is new words and the rest of the base, the second its start and new words.
        for cut in range(1, len(was)):
            if was[cut:] and one[-len(was[cut:]) :] == was[cut:] and two[:cut] == was[:cut]:
                head, tail = first[: len(first) - len(was[cut:])], second[cut:]
                return (*head, *tail)
    return None


def _quote(items: Sequence[Item]) -> str:
    said = " ".join(text(items).split())
    if len(said) > 60:
        said = said[:57] + "..."
    return f"`{said}`" if said else "nothing"
