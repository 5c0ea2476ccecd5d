"""Which statement of a side is which of the base.

Defs, classes and imports are known by name, others by what they say; what is left
between those is known by likeness.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from patchq.engine import alignment
from patchq.engine.structural.nodes import Block, Clause, Element, Group, Item, Statement, norm
from patchq.engine.structural.tokens import Token

_ALIKE = 0.5
# What is alone between two others need not be as like.
_ALONE = 0.3
_NONE = Token("", "", "sign")
_MOST = 900
# So like are two defs of different names that are one; more pairs than these are not compared.
_SAME, _FEW = 0.75, 100
_SIMPLE = frozenset("= return expression yield annotation".split())


def statements(base: Sequence[Statement], side: Sequence[Statement]) -> dict[int, int]:
    """Return the index of every statement of the base that a side has."""
    one, two = [label(x) for x in base], [label(x) for x in side]
    if base and side and docstring(base[0]) and docstring(side[0]):
        one[0] = two[0] = "docstring"
    found = alignment.pairs(one, two)
    _moved(one, two, found)
    _modules(base, side, found)
    _renamed(base, side, found)
    return _between(base, side, found)


def twins(one: Sequence[str], other: Sequence[str]) -> dict[int, int]:
    """Return which of the others each is, each once, in their order where that can be.

    Example:
        >>> twins("ab", "ba")
        {0: 1, 1: 0}
    """
    found = alignment.pairs(one, other)
    used = set(found.values())
    for at, said in enumerate(one):
        to = next((to for to, x in enumerate(other) if x == said and to not in used), None)
        if at not in found and to is not None:
            found[at] = to
            used.add(to)
    return dict(sorted(found.items()))


def docstring(one: Statement) -> bool:
    """Return True for a statement that is a string alone."""
    head = one.clauses[0].head
    return len(head) == 1 and isinstance(head[0], Token) and head[0].kind == "string"


def clauses(base: Sequence[Clause], side: Sequence[Clause]) -> dict[int, int]:
    """Return the index of every clause of a statement of the base that a side has.

    Branches are known by their condition, whether it says ``if`` or ``elif``.
    """
    one, two = ([_condition(x) for x in clauses] for clauses in (base, side))
    found = alignment.pairs(one, two)
    for gap, other in _gaps(found, len(base), len(side)):
        words = [_word(base[at]) for at in gap], [_word(side[at]) for at in other]
        if len(gap) != len(other) and "if" in words[0]:
            table = [[_alike(base[at], side[to]) for to in other] for at in gap]
            found.update((gap[row], other[column]) for row, column in best(table))
            continue
        for at, to in alignment.pairs(*words).items():
            if words[0][at] != "@":
                found[gap[at]] = other[to]
    return {at: to for at, to in found.items() if not _swapped(base, side, at, to)}


def _word(one: Clause) -> str:
    return "if" if one.word == "elif" else one.word


def _condition(one: Clause) -> str:
    return "\x1f".join([_word(one), norm(one.head[1:])])


def _alike(one: Clause, other: Clause) -> float:
    return dice(tuple(words(one)), tuple(words(other))) if _word(one) == _word(other) else 0.0


def _swapped(base: Sequence[Clause], side: Sequence[Clause], at: int, to: int) -> bool:
    """Return True for a pair of clauses whose blocks say that each is another one."""
    was, now = base[at].body, side[to].body
    if was is None or now is None or was.norm == now.norm:
        return False
    others = [x.body.norm for x in base if x.body is not None and x is not base[at]]
    bodies = [x.body.norm for x in side if x.body is not None and x is not side[to]]
    return was.norm in bodies and now.norm in others


def label(one: Statement) -> str:
    """Return what a statement is known by."""
    if one.name:
        marks = [norm(clause.head) for clause in one.clauses[:-1]]
        kept = [mark for mark in marks if "setter" in mark or "overload" in mark]
        return "\x1f".join(["def", one.name, *kept])
    if one.imports:
        return import_label(one)
    return one.norm


def import_label(one: Statement) -> str:
    """Return what an import line is known by: its module, and its name if it has only one."""
    names = one.clauses[0].head[-1]
    assert isinstance(names, Group)
    if len(names.elements) == 1:
        return f"from\x1f{one.imports}\x1f{names.elements[0].norm}"
    return f"from\x1f{one.imports}"


def _names(one: Statement) -> Group:
    names = one.clauses[0].head[-1]
    return names if isinstance(names, Group) else Group("", _NONE, "", (), _NONE)


def target(one: Statement) -> str:
    """Return what a statement assigns to, else ""."""
    head = one.clauses[0].head
    if len(one.clauses) > 1 or one.clauses[0].body is not None:
        return ""
    for at, item in enumerate(head):
        if isinstance(item, Token) and item.text in ("=", ":", "+=", "-=", "|="):
            return norm(head[:at])
    return ""


def shape(one: Statement) -> str:
    """Return a word for the kind of a statement."""
    clause = one.clauses[-1] if one.name else one.clauses[0]
    if clause.body is not None or one.imports:
        return clause.word
    if target(one):
        return "="
    return "expression" if clause.word not in ("return", "raise", "assert", "del") else clause.word


def likeness(one: Statement, other: Statement) -> float:
    """Return how like two statements are, from 0 to 1."""
    kinds = shape(one), shape(other)
    if kinds[0] != kinds[1] and not (set(kinds) <= _SIMPLE):
        return 0.0
    if one.name or other.name:
        return 0.0
    same = 0.0
    if one.imports or other.imports:
        several = any(len(names.elements) > 1 for names in map(_names, (one, other)))
        return 0.9 if one.imports == other.imports and several else 0.0
    if target(one) and target(one) == target(other):
        same = 0.75
    mine, yours = one.clauses[0], other.clauses[0]
    if mine.body is not None and mine.header == yours.header:
        same = 0.8 if len(mine.head) > 2 else 0.55
    return max(same, dice(tuple(words(one)), tuple(words(other))))


def dice(one: Sequence[str], other: Sequence[str]) -> float:
    """Return the share of words that two texts have together."""
    common = sum((Counter(one) & Counter(other)).values())
    return 2 * common / max(1, len(one) + len(other))


def _moved(one: Sequence[str], two: Sequence[str], found: dict[int, int]) -> None:
    """Add defs and imports that are elsewhere."""
    used = set(found.values())
    where = {name: to for to, name in enumerate(two) if to not in used}
    for at, name in enumerate(one):
        if at not in found and name.startswith(("def\x1f", "from\x1f")) and name in where:
            found[at] = where.pop(name)


def _modules(base: Sequence[Statement], side: Sequence[Statement], found: dict[int, int]) -> None:
    """Add the only imports that both have of one module."""
    one, two = ([x.imports for x in block] for block in (base, side))
    for at, module in enumerate(one):
        known = at in found or module in ("", "import")
        if not known and one.count(module) == two.count(module) == 1:
            found[at] = two.index(module)


def _renamed(base: Sequence[Statement], side: Sequence[Statement], found: dict[int, int]) -> None:
    """Add defs and classes that have another name, and else say nearly the same."""
    used = set(found.values())
    gone = [at for at, one in enumerate(base) if one.name and at not in found]
    come = [to for to, one in enumerate(side) if one.name and to not in used]
    if len(gone) * len(come) > _FEW:
        return
    said = {to: tuple(words(side[to])) for to in come}
    for at in gone:
        mine = tuple(words(base[at]))
        alike = sorted((dice(mine, said[to]), to) for to in come if to in said)
        word = base[at].clauses[-1].word
        if alike and alike[-1][0] > _SAME and side[alike[-1][1]].clauses[-1].word == word:
            found[at] = alike[-1][1]
            del said[alike[-1][1]]


def _gaps(found: dict[int, int], base: int, side: int) -> list[tuple[list[int], list[int]]]:
    """Return what is not matched on both sides, between matches that rise."""
    rising: list[int] = []
    for at in sorted(found):
        if not rising or found[at] > found[rising[-1]]:
            rising.append(at)
    used = set(found.values())
    gaps = []
    begin, start = 0, 0
    for at in [*rising, base]:
        end = found[at] if at < base else side
        gaps.append(
            (
                [x for x in range(begin, at) if x not in found],
                [x for x in range(start, end) if x not in used],
            )
        )
        begin, start = at + 1, end + 1
    return [gap for gap in gaps if gap[0] and gap[1]]


def _between(
    base: Sequence[Statement], side: Sequence[Statement], found: dict[int, int]
) -> dict[int, int]:
    """Add, between the matches, those that are alike."""
    for gap, other in _gaps(found, len(base), len(side)):
        if len(gap) * len(other) > _MOST:
            continue
        if len(gap) == len(other) == 1:
            if likeness(base[gap[0]], side[other[0]]) > _ALONE:
                found[gap[0]] = other[0]
            continue
        table = [[likeness(base[at], side[to]) for to in other] for at in gap]
        for row, column in best(table):
            found[gap[row]] = other[column]
    return found


def best(table: Sequence[Sequence[float]]) -> list[tuple[int, int]]:
    """Return the rising pairs of a table of likenesses that are most alike together."""
    rows, columns = len(table), len(table[0])
    sums = [[0.0] * (columns + 1) for _ in range(rows + 1)]
    for row in range(rows - 1, -1, -1):
        for column in range(columns - 1, -1, -1):
            take = table[row][column]
            sums[row][column] = max(
                sums[row + 1][column],
                sums[row][column + 1],
                take + sums[row + 1][column + 1] if take > _ALIKE else 0.0,
            )
    found, row, column = [], 0, 0
    while row < rows and column < columns:
        take = table[row][column]
        if take > _ALIKE and sums[row][column] == take + sums[row + 1][column + 1]:
            found.append((row, column))
            row, column = row + 1, column + 1
        elif sums[row][column] == sums[row + 1][column]:
            row += 1
        else:
            column += 1
    return found


def words(node: Statement | Clause | Block | Element | Item) -> Iterator[str]:
    """Yield the words of a node, as they are compared, without commas and parentheses."""
    match node:
        case Token():
            if node.text not in ("(", ")", ",") and node.text:
                yield node.norm
        case Group():
            if node.open.text in ("[", "{"):
                yield node.open.text
            for element in node.elements:
                yield from words(element)
        case Element():
            for item in node.items:
                yield from words(item)
        case Clause():
            for item in node.head:
                yield from words(item)
            if node.body:
                yield from words(node.body)
        case Statement():
            for clause in node.clauses:
                yield from words(clause)
        case Block():
            for statement in node.statements:
                yield from words(statement)
