"""Blocks merged by their logical lines, where one side put code into another block.

A line is the same at whatever depth it stands: an `if` put around some lines moves
them, and changes nothing in them. New lines of the patch go as deep as the lines
around them went. What comes out is always flagged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from patchq.engine import merge
from patchq.engine.structural import layout, matching, reading, trivia, words
from patchq.engine.structural.nodes import Block, Clause, Statement
from patchq.engine.structural.notes import Notes
from patchq.engine.structural.sequences import Conflict
from patchq.engine.structural.tokens import Unreadable


@dataclass(frozen=True)
class _Row:
    """A logical line without its block, and how deep it stands."""

    clause: Clause
    depth: int


def merged(base: Block, ours: Block, theirs: Block, notes: Notes) -> Block:
    """Return a block with the lines of a merge. Raises: Conflict."""
    sides = [list(_rows(one)) for one in (base, ours, theirs)]
    keys = _keys(sides)
    found: list[_Row] = []
    shifts = _shifts(sides, keys)
    for span in merge.spans(keys[0], keys[1], keys[2]):
        was, mine, other = (
            side[slice(*part)]
            for side, part in zip(sides, (span.base, span.ours, span.theirs), strict=True)
        )
        if span.side == "base":
            found += [_same(*three, notes) for three in zip(was, mine, other, strict=True)]
        elif span.side == "ours" or span.side == "both":
            _untouched(was, other if span.side == "ours" else was, sides[1])
            found += mine
        elif span.side == "theirs":
            _untouched(was, mine, sides[2])
            found += _shifted(other, shifts, span.base)
        else:
            raise Conflict("both sides changed lines that went into another block")
    return _block(found, ours)


def _rows(block: Block) -> Iterator[_Row]:
    for statement in block.statements:
        for clause in statement.clauses:
            if "\n" not in clause.tail or (clause.body is not None and clause.body.end):
                raise Conflict("a block that is not one line after the other")
            yield _Row(replace(clause, body=None), len(clause.indent.expandtabs()))
            if clause.body is not None:
                yield from _rows(clause.body)


def _same(base: _Row, ours: _Row, theirs: _Row, notes: Notes) -> _Row:
    """Merge a line that all have: its depth and its comments."""
    if base.depth == theirs.depth or ours.depth == theirs.depth:
        depth = ours.depth
    elif base.depth == ours.depth:
        depth = theirs.depth
    else:
        raise Conflict("both sides put a line into other blocks")
    one = ours.clause
    clause = replace(
        one,
        head=words.merged(base.clause.head, one.head, theirs.clause.head, notes),
        above=trivia.above(base.clause.above, one.above, theirs.clause.above, notes),
        tail=trivia.beside(base.clause.tail, one.tail, theirs.clause.tail),
    )
    return _Row(clause, depth)


def _keys(sides: Sequence[list[_Row]]) -> list[list[str]]:
    """Return a name for every line; lines that are alike have the one of the base's."""
    lines = [[Statement((row.clause,)) for row in side] for side in sides]
    found = [[f"{who}\x1b{at}" for at in range(len(side))] for who, side in enumerate(sides)]
    found[0] = [str(at) for at in range(len(sides[0]))]
    for keys, side in zip(found[1:], lines[1:], strict=True):
        for at, to in matching.statements(lines[0], side).items():
            keys[to] = str(at)
    new: dict[str, str] = {}
    for keys, side in zip(found[1:], lines[1:], strict=True):
        for at, one in enumerate(side):
            if "\x1b" in keys[at]:
                keys[at] = new.setdefault(one.norm, keys[at])
    return found


def _untouched(base: list[_Row], other: list[_Row], taker: list[_Row]) -> None:
    """Refuse to take out lines that the other side changed, and the taker has not so."""
    have = {row.clause.header for row in taker}
    for was, now in zip(base, other, strict=True):
        if was.clause.header != now.clause.header and now.clause.header not in have:
            raise Conflict("one side took out a line that the other changed")


def _shifts(sides: Sequence[list[_Row]], keys: Sequence[list[str]]) -> dict[int, int]:
    """Return how much deeper ours has each line of the base."""
    found = {}
    for span in merge.spans(keys[0], keys[1], keys[0]):
        if span.side == "base":
            for at, to in zip(range(*span.base), range(*span.ours), strict=True):
                found[at] = sides[1][to].depth - sides[0][at].depth
    return found


def _shifted(rows: list[_Row], shifts: dict[int, int], span: tuple[int, int]) -> list[_Row]:
    """Return lines of theirs as deep as ours has those around them. Raises: Conflict."""
    near = [shifts[at] for at in range(span[0], span[1]) if at in shifts]
    around = near or [shifts[at] for at in (span[0] - 1, span[1]) if at in shifts]
    if not around and rows:
        raise Conflict("what stood around the patch's lines is gone")
    if len(set(around)) > 1:
        raise Conflict("the patch's lines stand between two blocks")
    return [_Row(row.clause, row.depth + around[0]) for row in rows]


def _block(rows: list[_Row], ours: Block) -> Block:
    """Return lines as a block. Raises: Conflict where they make none."""
    least = min((row.depth for row in rows), default=0)
    text = ""
    for row in rows:
        statement = Statement((row.clause,))
        text += layout.indented(statement, " " * row.depth).text
    try:
        block = reading.block(text, " " * least)
    except Unreadable as error:
        raise Conflict("the lines of both make no block") from error
    return replace(block, end=ours.end)
