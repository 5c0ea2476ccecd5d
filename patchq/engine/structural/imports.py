"""Import lines: where a new one goes among sorted ones, and two that become one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from patchq.engine.structural import layout, order
from patchq.engine.structural.nodes import Group, Statement, norm

_FEW = 2


def names(one: Statement) -> Group:
    """Return the names of an import line."""
    found = one.clauses[0].head[-1]
    assert isinstance(found, Group)
    return found


def sort_key(one: Statement) -> str:
    """Return what sorted imports are sorted by: module, then names."""
    if one.imports == "import":
        return norm(one.clauses[0].head[1:])
    return one.imports + "\x1f" + names(one).norm


def gained(base: Statement, side: Statement) -> Statement | None:
    """Return an import with the names alone that a side added; None where there is none."""
    if not base.imports or base.imports != side.imports:
        return None
    had = {one.norm for one in names(base).elements}
    group = names(side)
    new = tuple(one for one in group.elements if one.norm not in had)
    return _with(side, layout.relaid(group, group, group, new)) if new else None


def united(one: Statement, other: Statement) -> Statement | None:
    """Return one import with the names of both; None where each line has one name."""
    mine, yours = names(one), names(other)
    if len(mine.elements) == 1 and len(yours.elements) == 1:
        return None
    had = {x.norm for x in mine.elements}
    elements = list(mine.elements)
    for x in yours.elements:
        if x.norm not in had:
            there = [e.norm for e in elements]
            where = order.places(there, [e.norm for e in yours.elements], x.norm)
            elements.insert(where.pop() if len(where) == 1 else len(elements), x)
    return _with(one, layout.relaid(mine, yours, mine, elements))


def in_order(found: Sequence[Statement], ours: Sequence[Statement]) -> list[Statement]:
    """Put new import lines where the order of the sorted lines around them has them."""
    mine = {id(one) for one in ours}
    modules = {one.imports for one in ours}
    out = list(found)
    for one in found:
        if not one.imports or id(one) in mine or one.imports in modules - {"import"}:
            continue
        at = next(n for n, x in enumerate(out) if x is one)
        low, high = _run(out, at)
        rest = [x for x in out[low:high] if x is not one]
        places = order.places([sort_key(x) for x in rest], [], sort_key(one))
        if len(rest) > _FEW and places and at - low not in places:
            out[low:high] = _moved(out[low:high], one, min(places))
    return out


def sorted_(found: Sequence[Statement]) -> bool:
    """Return True where every run of import lines is in some order, and one is long."""
    runs = []
    at = 0
    while at < len(found):
        if found[at].imports:
            low, high = _run(found, at)
            runs.append([sort_key(one) for one in found[low:high]])
            at = high
        else:
            at += 1
    return any(len(run) > _FEW for run in runs) and all(
        len(run) < _FEW or order.kept(run) or order.kept([*run, run[-1]]) for run in runs
    )


def _run(found: Sequence[Statement], at: int) -> tuple[int, int]:
    """Return the import lines around one that no blank line parts from it."""
    low = high = at
    while low and found[low - 1].imports and not _parted(found[low]):
        low -= 1
    while high + 1 < len(found) and found[high + 1].imports and not _parted(found[high + 1]):
        high += 1
    return low, high + 1


def _parted(one: Statement) -> bool:
    return any(not row.strip() for row in one.clauses[0].above.splitlines())


def _moved(run: list[Statement], one: Statement, to: int) -> list[Statement]:
    """Return a run with one line elsewhere; what stood above the run still does."""
    above = run[0].clauses[0].above
    rest = [x for x in run if x is not one]
    if run[0] is one:
        rest[0] = _above(rest[0], above + rest[0].clauses[0].above)
        one = _above(one, "")
    if to == 0 and not one.clauses[0].above:
        one, rest[0] = _above(one, above), _above(rest[0], rest[0].clauses[0].above[len(above) :])
    return [*rest[:to], one, *rest[to:]]


def _above(one: Statement, above: str) -> Statement:
    return Statement((replace(one.clauses[0], above=above), *one.clauses[1:]))


def _with(one: Statement, group: Group) -> Statement:
    clause = one.clauses[0]
    return Statement((replace(clause, head=(*clause.head[:-1], group)),))
