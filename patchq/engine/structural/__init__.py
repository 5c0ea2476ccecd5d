"""Python texts merged three ways by their structure, where lines conflict."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from patchq.engine.structural import reading, renames, review, statements
from patchq.engine.structural.nodes import Block
from patchq.engine.structural.notes import Notes
from patchq.engine.structural.sequences import Conflict
from patchq.engine.structural.tokens import Unreadable


@dataclass(frozen=True, slots=True)
class Result:
    """A merged text, or None; the choices left open, or the reasons why there is none.

    `upstream`: ours has all of it.
    """

    text: str | None
    upstream: bool = False
    flags: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()


def merge(base: str, ours: str, theirs: str) -> Result:
    """Merge three texts. Pure; never raises over a text."""
    if ours in (base, theirs):
        return Result(theirs, ours == theirs)
    notes = Notes()
    try:
        sides = [reading.read(one) for one in _renamed(base, ours, theirs, notes)]
        found = statements.block(
            sides[0], sides[1], sides[2], statements.Statements("module", notes)
        )
    except Unreadable as error:
        return Result(None, reasons=(f"not read as Python: {error}",))
    except Conflict as conflict:
        return Result(None, reasons=(str(conflict),))
    read = [review.names(one) for one in sides]
    review.review(read, [base, ours, theirs], found.text, notes)
    if notes.reasons:
        return Result(None, reasons=notes.refused(ours))
    mine = reading.read(ours)
    there = found.norm == mine.norm and found.comments == mine.comments
    text = ours if there else found.text
    _lost(sides, found, notes)
    return Result(text, there, notes.told(text))


def reviewed(base: str, ours: str, theirs: str, text: str) -> tuple[str, ...]:
    """Return what may be wrong with a text merged otherwise: names that changed meanwhile."""
    notes = Notes()
    try:
        read = [review.names(reading.read(one)) for one in (base, ours, theirs)]
    except Unreadable:
        return ()
    review.review(read, [base, ours, theirs], text, notes)
    return notes.told(text)


def _lost(sides: list[Block], result: Block, notes: Notes) -> None:
    """Flag the comments that a side added, or that all kept, and the result has not."""
    base, ours, theirs = (Counter(one.comments) for one in sides)
    kept = base - (base - ours) - (base - theirs)
    wanted = kept | (ours - base) | (theirs - base)
    for comment in wanted - Counter(result.comments):
        notes.flag(f"this comment went with what one side took out: {comment}", "")


def _renamed(base: str, ours: str, theirs: str, notes: Notes) -> tuple[str, str, str]:
    """Return the texts with the names that either side gave, in all three."""
    mine, other = renames.found(base, ours), renames.found(base, theirs)
    both = (
        mine.keys() & other.keys()
        | {old for old, new in mine.items() if new in other.values() or new in theirs}
        | {old for old, new in other.items() if new in ours}
    )
    # What the other side has taken out is not renamed there.
    mine = {old: new for old, new in mine.items() if old not in both and old in theirs}
    other = {old: new for old, new in other.items() if old not in both and old in ours}
    for names, side, who, adds in (
        (mine, theirs, "upstream", "the patch's"),
        (other, ours, "the patch", "upstream's"),
    ):
        for old, new in names.items():
            if side.count(old) > base.count(old):
                notes.flag(f"{who} calls `{old}` `{new}`; {adds} new lines follow", new)
    return (
        renames.renamed(base, mine | other),
        renames.renamed(ours, other),
        renames.renamed(theirs, mine),
    )
