"""New members laid out as those around them are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from patchq.engine.structural.nodes import (
    COMMENT,
    Block,
    Clause,
    Element,
    Group,
    Item,
    Statement,
)
from patchq.engine.structural.sequences import Conflict
from patchq.engine.structural.tokens import Token


def relaid(ours: Group, theirs: Group, base: Group, elements: Sequence[Element]) -> Group:
    """Return brackets with these elements, in the layout of ours, or of theirs if it grew.

    Raises: Conflict where a comment has no line to be on.
    """
    kept = {id(one) for one in ours.elements}
    broken = [_broken(one) for one in (base, ours, theirs)]
    model = theirs if broken == [False, False, True] else ours
    if not ours.elements:
        model = theirs
    if not _broken(model) and any(one.comments for one in elements):
        model = next((one for one in (ours, theirs) if _broken(one)), model)
        if not _broken(model):
            raise Conflict("a comment stands in a list of one line")
    lead = next((one.lead for one in model.elements if "\n" in one.lead), None)
    first = model.elements[0].lead if model.elements else ""
    found: list[Element] = []
    for at, one in enumerate(elements):
        mine = id(one) in kept and model is ours
        if not mine or (at == 0) != (one is model.elements[0]):
            one = replace(one, lead=_lead(one.lead, lead, first, at), gap="")
        after = found[-1].tail if found else model.opened
        if "#" in after and "\n" not in one.lead:
            one = replace(one, lead=(lead or "\n") + one.lead.strip(" "))
        found.append(one)
    comma = model.elements[-1].comma if model.elements else False
    single = ours.kind == "(" and len(found) == 1
    found = [
        replace(one, comma=at < len(found) - 1 or comma or single) for at, one in enumerate(found)
    ]
    close = model.close
    if found and "#" in found[-1].tail and "\n" not in close.before:
        close = Token(close.text, lead or "\n", close.kind)
    return replace(
        ours,
        open=Token(model.open.text, ours.open.before, "sign"),
        opened=model.opened,
        elements=tuple(found),
        close=close,
    )


def _broken(group: Group) -> bool:
    return any("\n" in one.lead for one in group.elements)


def _lead(lead: str, model: str | None, first: str, at: int) -> str:
    """Return what stands before an element that comes from elsewhere."""
    comments = COMMENT.findall(lead)
    if model is None:
        if comments:
            raise Conflict("a comment stands in a list of one line")
        return first if at == 0 else " "
    row = "\n" + model.rsplit("\n", 1)[1]
    if at == 0 and "\n" not in first and not comments:
        return first
    return "".join(row + one for one in comments) + row


def indented(one: Statement, indent: str) -> Statement:
    """Return a statement at another indentation."""
    old = one.indent
    if old == indent or "\n" in old:
        return one
    return Statement(tuple(_clause(clause, old, indent) for clause in one.clauses))


def _clause(one: Clause, old: str, new: str) -> Clause:
    return Clause(
        _lines(one.above, old, new),
        _swap(one.indent, old, new),
        tuple(_item(item, old, new) for item in one.head),
        one.tail,
        _block(one.body, old, new) if one.body else None,
    )


def _block(one: Block, old: str, new: str) -> Block:
    inner = tuple(
        Statement(tuple(_clause(clause, old, new) for clause in statement.clauses))
        for statement in one.statements
    )
    return Block(inner, _lines(one.end, old, new))


def _item(one: Item, old: str, new: str) -> Item:
    if isinstance(one, Token):
        return Token(one.text, _shift(one.before, old, new), one.kind)
    return Group(
        one.kind,
        Token(one.open.text, _shift(one.open.before, old, new), one.open.kind),
        one.opened,
        tuple(
            Element(
                _shift(part.lead, old, new),
                tuple(_item(item, old, new) for item in part.items),
                _shift(part.gap, old, new),
                part.comma,
                part.tail,
            )
            for part in one.elements
        ),
        Token(one.close.text, _shift(one.close.before, old, new), one.close.kind),
    )


def _swap(indent: str, old: str, new: str) -> str:
    return new + indent[len(old) :] if indent.startswith(old) else indent


def _lines(rows: str, old: str, new: str) -> str:
    """Return whole lines, moved; blank ones stay."""
    return "".join(
        _swap(row, old, new) if row.strip() else row for row in rows.splitlines(keepends=True)
    )


def _shift(space: str, old: str, new: str) -> str:
    """Return what stands before a word, with every line in it moved."""
    first, *rows = space.split("\n")
    last = len(rows) - 1
    moved = [
        _swap(row, old, new) if row.strip() or at == last else row for at, row in enumerate(rows)
    ]
    return "\n".join([first, *moved])
