"""The clauses of one statement merged three ways: headers, decorators, and blocks under them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from patchq.engine.structural import matching, trivia, words
from patchq.engine.structural.nodes import Block, Clause, Group, Statement, line
from patchq.engine.structural.notes import Notes
from patchq.engine.structural.sequences import Conflict, Gap

# Merges the blocks under three clauses, in a scope.
Blocks = Callable[[tuple[Block, Block, Block], str, Notes], Block]


class Clauses:
    """The rules of the clauses of one statement."""

    def __init__(
        self, scope: str, notes: Notes, absentees: list[Statement], blocks: Blocks
    ) -> None:
        self.scope, self.notes, self.absentees, self.blocks = scope, notes, absentees, blocks

    def match(self, base: Sequence[Clause], side: Sequence[Clause]) -> Mapping[int, int]:
        """Match by header, then by first word."""
        return matching.clauses(base, side)

    def same(self, one: Clause, other: Clause) -> bool:
        """Compare words and comments."""
        return one.norm == other.norm and one.comments == other.comments

    def twins(self, one: Clause, other: Clause) -> bool:
        """Compare words."""
        return one.norm == other.norm

    def merge(self, base: Clause, ours: Clause, theirs: Clause) -> Clause:
        """Merge header, comments and block."""
        head = words.merged(base.head, ours.head, theirs.head, self.notes)
        body = self._body(base, ours, theirs)
        if ours.word == "class" and _rebased(base, ours, theirs):
            said = f"upstream changed `{line(ours)}`, which the patch changes too"
            self.notes.flag(said, ours.indent + line(ours))
        tail = trivia.beside(base.tail, ours.tail, theirs.tail)
        if body is not None and body is theirs.body and "\n" not in ours.tail:
            tail = theirs.tail
        return Clause(
            trivia.above(base.above, ours.above, theirs.above, self.notes),
            ours.indent,
            head,
            tail,
            body,
        )

    def _body(self, base: Clause, ours: Clause, theirs: Clause) -> Block | None:
        if base.body is None or ours.body is None or theirs.body is None:
            if base.body is ours.body is theirs.body:
                return None
            raise Conflict("one side has a block where another has none")
        if any("\n" not in one.tail for one in (base, ours, theirs)):
            if base.body.norm == theirs.body.norm:
                return ours.body
            if base.body.norm == ours.body.norm or ours.body.norm == theirs.body.norm:
                return theirs.body
            if any("\n" in one.tail for one in (base, ours, theirs)):
                raise Conflict("a block on its header's line, and changed on both sides")
        word = ours.word
        scope = word if word in ("class", "def") else self.scope
        return self.blocks((base.body, ours.body, theirs.body), scope, self.notes)

    def taken(self, base: Clause, ours: Clause, theirs: Clause) -> Clause:
        """Take it as it is."""
        return theirs

    def gone(self, base: Clause, side: Clause, who: str) -> Clause | None:
        """Refuse what one side took out and the other changed."""
        raise Conflict(f"one side took out `{line(base)}`, which the other changed")

    def absent(self, member: Clause) -> None:
        """Flag it: upstream may have done the same in its own way."""
        self.absentees.append(Statement((member,)))

    def moved(self, member: Clause) -> None:
        """Refuse another order."""
        raise Conflict(f"the patch moves `{line(member)}`")

    def adrift(self, member: Clause) -> None:
        """Refuse what stood beside a clause that upstream moved."""
        raise Conflict(f"upstream moved `{line(member)}`")

    def amid(self, member: Clause, gone: Clause) -> None:
        """Refuse a clause amid those that the patch takes out."""
        raise Conflict(f"upstream puts `{line(member)}` amid what the patch takes out")

    def alone(self, gap: Gap[Clause]) -> Sequence[Clause]:
        """Put in what only the patch has."""
        return gap.theirs

    def both(self, gap: Gap[Clause]) -> Sequence[Clause]:
        """Put in what both have, once."""
        rest = [one for one in gap.theirs if not any(one.norm == x.norm for x in gap.ours)]
        if not rest:
            return gap.ours
        raise Conflict(f"both sides put in a clause: `{line(rest[0])}`")


def _rebased(base: Clause, ours: Clause, theirs: Clause) -> bool:
    """Return True where ours took a base from a class that theirs adds members to."""
    had, has = (
        {one.norm for item in side.head if isinstance(item, Group) for one in item.elements}
        for side in (base, ours)
    )
    old, new = (
        {one.name for one in (side.body.statements if side.body else ())}
        for side in (base, theirs)
    )
    return bool(had - has and new - old)
