"""The members between the commas of brackets: how they are known, and where new ones go.

Members of a set, a dict, keyword arguments and imported names are known by their
key, and their order is free. Elsewhere order means something.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from patchq.engine import alignment
from patchq.engine.structural import matching, order, trivia
from patchq.engine.structural.nodes import Element, Item, norm
from patchq.engine.structural.notes import Notes
from patchq.engine.structural.sequences import Conflict, Gap
from patchq.engine.structural.tokens import Token

Merge = Callable[[tuple[Item, ...], tuple[Item, ...], tuple[Item, ...], Notes], tuple[Item, ...]]
# Pairs of new members that are compared.
_MOST = 40_000
_WHAT = {
    "names": "import list",
    "call": "arguments",
    "parameters": "parameters",
    "bases": "bases",
    "dict": "dict",
    "set": "set",
    "[": "list",
    "(": "tuple",
    "index": "index",
}


def colon(one: Element) -> int:
    """Return where the colon of a dict's member is; 0 where there is none."""
    for at, item in enumerate(one.items):
        if isinstance(item, Token) and item.text in (":", "lambda"):
            return at if item.text == ":" else 0
    return 0


class Elements:
    """The rules of members between commas."""

    def __init__(self, kind: str, notes: Notes, words: Merge) -> None:
        self.kind, self.notes, self.words = kind, notes, words
        self.absentees: list[Element] = []

    def key(self, one: Element) -> str:
        """Return what a member is known by; "" where only its place tells."""
        head = one.items[0] if one.items else None
        start = head.text if isinstance(head, Token) else ""
        second = one.items[1] if len(one.items) > 1 else None
        match self.kind:
            case "call" | "bases" if isinstance(second, Token) and second.text == "=":
                return f"{start}="
            case "call" | "bases" if start in ("*", "**"):
                return one.norm
            case "call":
                return ""
            case "parameters":
                stars = start if start in ("*", "**") else ""
                name = one.items[1:2] if stars else one.items[:1]
                return stars + norm(name)
            case "dict":
                return norm(one.items[: colon(one)]) or one.norm
            case "[" | "(" | "index":
                return ""
        return one.norm

    @property
    def free(self) -> bool:
        """True where the order of members means nothing."""
        return self.kind in ("names", "set", "dict")

    def match(self, base: Sequence[Element], side: Sequence[Element]) -> Mapping[int, int]:
        """Match by key, else by what the members say and by likeness."""
        found: dict[int, int] = {}
        where: dict[str, int] = {}
        for to, one in enumerate(side):
            where.setdefault(self.key(one), to)
        for at, one in enumerate(base):
            name = self.key(one)
            if name and name in where:
                found[at] = where.pop(name)
        rest = [at for at, one in enumerate(base) if not self.key(one)]
        others = [to for to, one in enumerate(side) if not self.key(one)]
        if len(rest) == len(others) and self.kind in ("call", "(", "index"):
            found.update(zip(rest, others, strict=True))
        elif rest and others:
            found.update(self._alike(base, side, rest, others))
        return found

    def _alike(
        self, base: Sequence[Element], side: Sequence[Element], rest: list[int], others: list[int]
    ) -> dict[int, int]:
        one, two = [base[at].norm for at in rest], [side[to].norm for to in others]
        pairs = alignment.pairs(one, two)
        bounds = [(-1, -1), *sorted(pairs.items()), (len(one), len(two))]
        for (a0, b0), (a1, b1) in pairwise(bounds):
            gap, other = range(a0 + 1, a1), range(b0 + 1, b1)
            if gap and other and len(gap) * len(other) < 400:
                table = [
                    [_likeness(base[rest[at]], side[others[to]]) for to in other] for at in gap
                ]
                for row, column in matching.best(table):
                    pairs[gap[row]] = other[column]
        return {rest[at]: others[to] for at, to in pairs.items()}

    def same(self, one: Element, other: Element) -> bool:
        """Compare words and comments."""
        return one.norm == other.norm and one.comments == other.comments

    def twins(self, one: Element, other: Element) -> bool:
        """Compare keys, or words where there is none."""
        return one.norm == other.norm or (self.key(one) != "" and self.key(one) == self.key(other))

    def merge(self, base: Element, ours: Element, theirs: Element) -> Element:
        """Merge the words of one member, and the comments beside it."""
        items = self.words(base.items, ours.items, theirs.items, self.notes)
        lead = ours.lead
        if "#" in base.lead + ours.lead + theirs.lead:
            rows = [_rows(one.lead) for one in (base, ours, theirs)]
            above = trivia.above(rows[0], rows[1], rows[2], self.notes)
            lead = ours.lead if above == rows[1] else _leading(above, ours.lead, theirs.lead)
        tail = trivia.beside(base.tail, ours.tail, theirs.tail)
        return replace(ours, items=items, lead=lead, tail=tail)

    def taken(self, base: Element, ours: Element, theirs: Element) -> Element:
        """Take it as it is; the layout of the brackets is done at the end."""
        return theirs

    def gone(self, base: Element, side: Element, who: str) -> Element | None:
        """Refuse what one side took out and the other changed."""
        if base.norm == side.norm:
            return None
        taker = "upstream" if who == "theirs" else "the patch"
        other = "the patch" if who == "theirs" else "upstream"
        raise Conflict(f"{taker} took out `{_short(base)}`, which {other} changed")

    def absent(self, member: Element) -> None:
        """Remember it: two members in its place are two versions of it."""
        self.absentees.append(member)

    def moved(self, member: Element) -> None:
        """Refuse a new order where order means something."""
        if not self.free and not self.key(member).endswith("="):
            raise Conflict(f"the patch moves `{_short(member)}`")
        self.notes.flag(
            f"the patch moves `{_short(member)}`; it stays where upstream has it", member.core
        )

    def adrift(self, member: Element) -> None:
        """Flag an order that upstream changed."""
        self.notes.flag(
            f"the patch puts something beside `{_short(member)}`, which upstream moved",
            member.core,
        )

    def amid(self, member: Element, gone: Element) -> None:
        """Say nothing: members of a list stand for themselves."""

    def alone(self, gap: Gap[Element]) -> Sequence[Element]:
        """Put in what only the patch has."""
        return gap.theirs

    def both(self, gap: Gap[Element]) -> Sequence[Element]:
        """Put in what both have, once; by order where there is one."""
        if len(gap.ours) * len(gap.theirs) > _MOST:
            raise Conflict(f"both sides put much at one place of the {self._what}")
        rest = [one for one in gap.theirs if not any(one.norm == x.norm for x in gap.ours)]
        names = {self.key(one) for one in gap.ours} - {""}
        for one in rest:
            if self.key(one) in names:
                raise Conflict(f"both sides put in `{_short(one)}`, and not alike")
        if not rest:
            return gap.ours
        twins = matching.twins([one.norm for one in gap.theirs], [one.norm for one in gap.ours])
        if len(twins) == len(gap.ours) and list(twins.values()) == sorted(twins.values()):
            return [gap.ours[twins[at]] if at in twins else x for at, x in enumerate(gap.theirs)]
        if len(rest) < len(gap.theirs) and not self.free:
            raise Conflict(f"upstream has a part of what the patch puts into the {self._what}")
        replaced = [one for one in gap.gone if any(one is x for x in self.absentees)]
        if replaced and not self.free:
            said = f"each side put something else in the place of `{_short(replaced[0])}`"
            raise Conflict(said)
        if self.kind in ("index", "one"):
            raise Conflict(f"both sides put something into one {self._what}")
        found = list(gap.ours)
        for one in rest:
            self._insert(found, one, gap)
        return found

    def _insert(self, found: list[Element], one: Element, gap: Gap[Element]) -> None:
        """Put one member among those of ours."""
        edge = [[x.norm] if x is not None else [] for x in (gap.before, gap.after)]
        whole = [*edge[0], *(x.norm for x in found), *edge[1]]
        around = [*edge[0], *(x.norm for x in gap.theirs), *edge[1]]
        places = {
            at - len(edge[0])
            for at in order.places(whole, around, one.norm)
            if len(edge[0]) <= at <= len(edge[0]) + len(found)
        }
        if self.kind in ("call", "bases", "parameters") and not self.key(one).endswith("="):
            raise Conflict(f"both sides put {self._what} at one place: `{_short(one)}`")
        if len(places) == 1:
            found.insert(places.pop(), one)
            return
        self.notes.flag(
            f"both sides put members at one place of the {self._what}; the patch's "
            f"`{_short(one)}` stands last",
            one.core,
        )
        found.append(one)

    @property
    def _what(self) -> str:
        return _WHAT.get(self.kind, "brackets")


def _likeness(one: Element, other: Element) -> float:
    kinds = [type(x.items[0]) if x.items else None for x in (one, other)]
    mine, yours = (one.norm.split("\x1f"), other.norm.split("\x1f"))
    if len(mine) == len(yours) == 1:
        return difflib.SequenceMatcher(
            None, mine[0].strip('"'), yours[0].strip('"'), False
        ).ratio()
    if kinds[0] != kinds[1] and len(mine) < 3:
        return 0.0
    return matching.dice(mine, yours)


def _rows(lead: str) -> str:
    return "".join(row + "\n" for row in lead.split("\n")[1:-1])


def _leading(above: str, ours: str, theirs: str) -> str:
    """Return a lead with these comment lines."""
    model = ours if "\n" in ours else theirs
    return "\n" + above + model.rsplit("\n", 1)[-1]


def _short(one: Element) -> str:
    said = " ".join(one.core.split())
    return said if len(said) <= 50 else said[:47] + "..."
