"""Compound statements before and after a patch: which was which, and what clauses they have.

A header alone tells a statement only where there is no other like it; of equal ones,
and of every `try`, it is the place that tells. What is new in them is `statements`' part.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator, Sequence, Set
from typing import TypeVar

from patchq.engine import alignment, wording
from patchq.engine.implied import SAYS_NOTHING, Scope

Held = Callable[[Sequence[ast.stmt], str], list[ast.stmt]]
Clause = TypeVar("Clause", ast.ExceptHandler, ast.match_case)


class Pairs:
    """The own statements of two scopes, those with one header paired by their order."""

    def __init__(self, old: Scope, new: Scope) -> None:
        found = alignment.pairs(old.said, new.said).items()
        self._both = [(old.own[at], new.own[to]) for at, to in found]
        self._was = {id(now): was for was, now in self._both}
        self._stayed = {id(was) for was, _ in self._both}
        self._known: dict[int, ast.stmt | None] = {}

    def was(self, node: ast.stmt) -> ast.stmt | None:
        """Return what a statement was below; None for one that stands there anew.

        Of two with one header the one that kept a statement under it was there.
        """
        if id(node) not in self._known:
            self._known[id(node)] = self._paired(node)
        return self._known[id(node)]

    def _paired(self, node: ast.stmt) -> ast.stmt | None:
        was = self._was.get(id(node))
        kept = {id(one) for one in _under(was)} & self._stayed if was else set()
        mine = {id(self._was.get(id(one))) for one in _under(node)} if kept else kept
        return was if not kept or kept & mine else None

    def fresh(self, node: ast.stmt) -> frozenset[str]:
        """Return the clauses that a statement has got; all of one that stands there anew."""
        was = self.was(node)
        return frozenset(clauses(node)) - frozenset(clauses(was) if was else ())

    def lost(self) -> Iterator[tuple[ast.stmt, frozenset[str]]]:
        """Yield each statement of below that is without some of its clauses now, and those."""
        for was, now in self._both:
            if gone := frozenset(clauses(was)) - frozenset(clauses(now)):
                yield was, gone


def clauses(node: ast.stmt) -> dict[str, frozenset[int]]:
    """Return what tells each clause behind the first block, and the lines where it begins.

    An `elif` is none: it is a statement of its own.
    """
    out: dict[str, frozenset[int]] = {}
    for handler in getattr(node, "handlers", ()):
        out[handled(handler)] = _rows(handler.lineno, handler.body)
    for case in getattr(node, "cases", ()):
        out[matched(case)] = _rows(case.pattern.lineno, case.body)
    for name in ("orelse", "finalbody"):
        block = getattr(node, name, ())
        if block and not (name == "orelse" and chained(block)):
            out[name] = _rows(block[0].lineno - 1, block)
    return out


def handled(clause: ast.ExceptHandler) -> str:
    """Return what tells an `except` clause from others."""
    return f"except {wording.key(clause.type)} as {clause.name}"


def matched(clause: ast.match_case) -> str:
    """Return what tells a `case` from others."""
    return f"case {wording.key(clause.pattern)} if {wording.key(clause.guard)}"


def chained(block: Sequence[ast.stmt]) -> bool:
    """Return True for the block of an `else` that may as well be an `elif`."""
    return len(block) == 1 and isinstance(block[0], ast.If)


def with_clauses(node: ast.stmt, wanted: Set[str], held: Held) -> ast.stmt:
    """Return a compound statement with these clauses, and those of which `held` keeps something.

    `held` gets each block and what tells its clause: "body" the first, "elif" one that goes on.
    """
    out = copy.copy(node)
    for name, block in ast.iter_fields(node):
        if name == "body" and isinstance(block, list):
            out.body = held(block, name) or [SAYS_NOTHING]  # type: ignore[attr-defined]
        elif name in ("orelse", "finalbody") and block:
            key = "elif" if name == "orelse" and chained(block) else name
            rest = held(block, key) or ([SAYS_NOTHING] if key in wanted else [])
            setattr(out, name, rest)
        elif name in ("handlers", "cases"):
            setattr(out, name, list(_some(block, wanted, held)))
    if isinstance(out, ast.Try | ast.TryStar) and isinstance(node, type(out)):
        if not out.handlers and (out.orelse or not out.finalbody):
            out.handlers = [_with(one, []) for one in node.handlers]
        if not out.handlers and not out.finalbody:
            out.finalbody = [SAYS_NOTHING]
    return out


def emptied(node: ast.stmt) -> ast.stmt:
    """Return a compound statement with nothing in it; any other as it is."""
    if not any(True for _ in wording.blocks(node)):
        return node
    handlers, cases = getattr(node, "handlers", ()), getattr(node, "cases", ())
    return with_clauses(node, {*map(handled, handlers), *map(matched, cases)}, lambda *_: [])


def _under(node: ast.stmt) -> Iterator[ast.stmt]:
    """Everything under a statement, but for what is a later branch's of its chain."""
    for block in wording.blocks(node):
        chain = block is getattr(node, "orelse", None) and chained(block)
        for one in () if chain else block:
            yield one
            yield from _under(one)


def _some(clauses: Sequence[Clause], wanted: Set[str], held: Held) -> Iterator[Clause]:
    for one in clauses:
        key = handled(one) if isinstance(one, ast.ExceptHandler) else matched(one)
        kept = held(one.body, key)
        if kept or key in wanted:
            yield _with(one, kept)


def _with(clause: Clause, block: list[ast.stmt]) -> Clause:
    out = copy.copy(clause)
    out.body = block or [SAYS_NOTHING]
    return out


def _rows(first: int, block: Sequence[ast.stmt]) -> frozenset[int]:
    return frozenset(range(first, max(first, block[0].lineno - 1) + 1))
