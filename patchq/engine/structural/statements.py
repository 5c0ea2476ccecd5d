"""Blocks of statements merged three ways."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from patchq.engine.structural import flat, imports, layout, matching, order, trivia
from patchq.engine.structural.clauses import Clauses
from patchq.engine.structural.nodes import Block, Statement, short
from patchq.engine.structural.notes import Notes
from patchq.engine.structural.sequences import Conflict, Gap
from patchq.engine.structural.sequences import merged as sequence

# So like are two new statements that are one, said in two ways.
_NEARLY = 0.75
# Pairs of new statements that are compared.
_MOST = 10_000


def block(base: Block, ours: Block, theirs: Block, rules: Statements) -> Block:
    """Return the statements of a merge, all at the indentation of ours. Raises: Conflict."""
    notes = rules.notes
    stops, flags = len(notes.reasons), len(notes.flags)
    found = _block(base, ours, theirs, rules)
    if rules.scope != "def" or len(notes.reasons) == stops:
        return found
    told = notes.flags[flags:]
    del notes.flags[flags:]
    try:
        found = flat.merged(base, ours, theirs, notes)
    except Conflict:
        notes.flags[flags:] = told
        return found
    said = notes.reasons[stops]
    del notes.reasons[stops:]
    notes.flag("merged by lines, since one side put code into another block", said[1])
    return found


def _block(base: Block, ours: Block, theirs: Block, rules: Statements) -> Block:
    if base.norm == ours.norm and base.comments == ours.comments and _reordered(base, theirs):
        indent = ours.statements[0].indent if ours.statements else ""
        moved = tuple(layout.indented(one, indent) for one in theirs.statements)
        return Block(moved, theirs.end, theirs.start)
    mine, other = ({one.norm for one in side.statements} for side in (ours, theirs))
    rules.there = {"theirs": mine, "ours": other}
    rules.sorted = imports.sorted_(ours.statements)
    found = sequence(base.statements, ours.statements, theirs.statements, rules)
    found = imports.in_order(found, ours.statements)
    kept = {one.norm for one in ours.statements}
    for one in theirs.statements:
        if one.norm not in kept and not one.imports:
            for gone in rules.absentees:
                rules.notes.flag(
                    f"both sides took out `{short(gone)}`; look whether upstream did what the "
                    "patch does",
                    short(one),
                )
            break
    indent = ours.statements[0].indent if ours.statements else ""
    placed = tuple(layout.indented(one, indent) for one in found)
    first = found[0] if found else None
    if base.start != ours.start and first and any(first is x for x in theirs.statements[:1]):
        rules.notes.flag("upstream changed the head of the file", short(found[0]))
    start = trivia.above(base.start, ours.start, theirs.start, rules.notes)
    return Block(placed, trivia.above(base.end, ours.end, theirs.end, rules.notes), start)


def _inner(three: tuple[Block, Block, Block], scope: str, notes: Notes) -> Block:
    return block(*three, Statements(scope, notes))


class Statements:
    """The rules of statements in one block; `scope` is "module", "class" or "def"."""

    def __init__(self, scope: str, notes: Notes) -> None:
        self.scope, self.notes = scope, notes
        self.absentees: list[Statement] = []
        self.sorted = False
        self.there: dict[str, set[str]] = {}

    def match(self, base: Sequence[Statement], side: Sequence[Statement]) -> Mapping[int, int]:
        """Match by name, by what statements say, by likeness."""
        return matching.statements(base, side)

    def same(self, one: Statement, other: Statement) -> bool:
        """Compare words and comments."""
        return one.norm == other.norm and one.comments == other.comments

    def twins(self, one: Statement, other: Statement) -> bool:
        """Compare words, names, modules."""
        named = one.name != "" and one.name == other.name
        strings = matching.docstring(one) and matching.docstring(other)
        return one.norm == other.norm or named or strings

    def merge(self, base: Statement, ours: Statement, theirs: Statement) -> Statement:
        """Merge clause by clause; a conflict is noted, and ours stands in for the result."""
        if base.name != ours.name:
            said = f"upstream calls `{base.name}` `{ours.name}`, and the patch changes it"
            self.notes.flag(said, short(ours))
        rules = Clauses(self.scope, self.notes, self.absentees, _inner)
        try:
            if len(base.clauses) == len(ours.clauses) == len(theirs.clauses) == 1:
                return Statement(
                    (rules.merge(base.clauses[0], ours.clauses[0], theirs.clauses[0]),)
                )
            return Statement(tuple(sequence(base.clauses, ours.clauses, theirs.clauses, rules)))
        except Conflict as conflict:
            where = ours.clauses[-1 if ours.name else 0]
            self.notes.refuse(
                str(conflict), where.indent + "".join(x.before + x.text for x in where.head)
            )
            return ours

    def taken(self, base: Statement, ours: Statement, theirs: Statement) -> Statement:
        """Take it with the blank lines above it that ours has."""
        above = [one.clauses[0].above for one in (base, ours, theirs)]
        kept = trivia.above(above[0], above[1], above[2], self.notes)
        return Statement((replace(theirs.clauses[0], above=kept), *theirs.clauses[1:]))

    def gone(self, base: Statement, side: Statement, who: str) -> Statement | None:
        """Keep the names that an import gained; refuse other changes of what was taken out."""
        if base.norm == side.norm:
            return None
        if side.norm in self.there.get(who, ()):
            return None
        gained = imports.gained(base, side)
        if gained is not None:
            return gained
        taker = "upstream" if who == "theirs" else "the patch"
        other = "the patch" if who == "theirs" else "upstream"
        self.notes.refuse(
            f"{taker} took out or moved `{short(base)}`, which {other} changed", short(side)
        )
        return side if who == "ours" else None

    def absent(self, member: Statement) -> None:
        """Flag it: upstream may have done the same in its own way."""
        if not member.imports:
            self.absentees.append(member)

    def moved(self, member: Statement) -> None:
        """Refuse a new order where order means something."""
        if member.imports and self.sorted:
            return
        if member.imports or member.name:
            self.notes.flag(
                f"the patch moves `{short(member)}`; it stays where upstream has it",
                short(member),
            )
            return
        self.notes.refuse(f"the patch moves `{short(member)}`", short(member))

    def adrift(self, member: Statement) -> None:
        """Flag an order that upstream changed."""
        if member.imports and self.sorted:
            return
        self.notes.flag(
            f"the patch puts something beside `{short(member)}`, which upstream moved",
            short(member),
        )

    def amid(self, member: Statement, gone: Statement) -> None:
        """Flag it: the two may belong together."""
        if not member.imports:
            said = f"upstream puts `{short(member)}` amid what the patch takes out"
            self.notes.flag(said, short(member))

    def alone(self, gap: Gap[Statement]) -> Sequence[Statement]:
        """Put in what only the patch has."""
        return gap.theirs

    def both(self, gap: Gap[Statement]) -> Sequence[Statement]:
        """Put in what both have, once."""
        ours = list(gap.ours)
        if len(gap.ours) * len(gap.theirs) > _MOST:
            self.notes.refuse("both sides put much at one place", short(ours[0]))
            return ours
        twins = matching.twins([one.norm for one in gap.theirs], [one.norm for one in ours])
        for at, to in twins.items():
            if gap.theirs[at].comments != ours[to].comments:
                ours[to] = _commented(ours[to], gap.theirs[at], self.notes)
        if len(twins) == len(ours) and list(twins.values()) == sorted(twins.values()):
            new = [one for at, one in enumerate(gap.theirs) if at not in twins]
            if new and not all(one.imports for one in gap.theirs):
                said = f"upstream has a part of what the patch puts here, not `{short(new[0])}`"
                self.notes.flag(said, short(new[0]))
            return [ours[twins[at]] if at in twins else x for at, x in enumerate(gap.theirs)]
        rest = [one for at, one in enumerate(gap.theirs) if at not in twins]
        if not rest:
            return ours
        new = [one for to, one in enumerate(ours) if to not in twins.values()]
        if self._refused(gap, new, rest):
            return ours
        for one in rest:
            if not self._unite(ours, one):
                self._insert(ours, one, gap)
        return ours

    def _refused(
        self, gap: Gap[Statement], ours: Sequence[Statement], theirs: Sequence[Statement]
    ) -> bool:
        """Refuse what both put in, where the two are one thing, each in its own way."""
        replaced = [one for one in gap.gone if any(one is x for x in self.absentees)]
        if replaced and ours and not all(one.imports for one in (*ours, *theirs)):
            said = f"each side put something else in the place of `{short(replaced[0])}`"
            self.notes.refuse(said, short(ours[0]))
            return True
        for one in theirs:
            for x in ours:
                if self.twins(one, x):
                    said = f"both sides put in `{one.name or 'a docstring'}`, and not alike"
                elif matching.likeness(one, x) > _NEARLY and not one.imports:
                    said = f"both sides put in nearly the same: `{short(one)}`"
                else:
                    continue
                self.notes.refuse(said, short(x))
                return True
        return False

    def _unite(self, ours: list[Statement], one: Statement) -> bool:
        """Put the names of an import into one that ours has of the same module."""
        for at, x in enumerate(ours):
            if one.imports not in ("", "import") and one.imports == x.imports:
                united = imports.united(x, one)
                if united is not None:
                    ours[at] = united
                    return True
        return False

    def _insert(self, found: list[Statement], one: Statement, gap: Gap[Statement]) -> None:
        if one.imports:
            self._import(found, one, gap)
            return
        what = "definitions" if one.name else "statements"
        self.notes.flag(
            f"both sides put {what} at one place; the patch's `{short(one)}` stands last",
            short(one),
        )
        found.append(one)

    def _import(self, found: list[Statement], one: Statement, gap: Gap[Statement]) -> None:
        """Put an import among those that ours begins with here."""
        mine = next((at for at, x in enumerate(found) if not x.imports), len(found))
        edge = [
            [imports.sort_key(x)] if x is not None and x.imports else []
            for x in (gap.before, gap.after if mine == len(found) else None)
        ]
        whole = [*edge[0], *map(imports.sort_key, found[:mine]), *edge[1]]
        around = [*edge[0], *(imports.sort_key(x) for x in gap.theirs if x.imports), *edge[1]]
        places = {at - len(edge[0]) for at in order.places(whole, around, imports.sort_key(one))}
        places = {at for at in places if 0 <= at <= mine}
        if len(places) == 1:
            found.insert(places.pop(), one)
            return
        if mine or not edge[0]:
            self.notes.flag(
                f"both sides put imports at one place; `{short(one)}` stands last", short(one)
            )
        found.insert(mine, one)


def _reordered(base: Block, side: Block) -> bool:
    """Return True where a side puts statements in another order."""
    found = matching.statements(base.statements, side.statements)
    places = [found[at] for at in sorted(found)]
    return places != sorted(places)


def _commented(one: Statement, other: Statement, notes: Notes) -> Statement:
    """Return a statement that both put in, with the comments of both above it."""
    first = one.clauses[0]
    above = trivia.above("", first.above, other.clauses[0].above, notes)
    return Statement((replace(first, above=above), *one.clauses[1:]))
