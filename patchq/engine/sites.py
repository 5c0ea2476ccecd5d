"""The statements of a scope as places where a line of a sketch may fit.

A site is a statement at any depth of a body, in the order of the text, never
inside a nested def or class (R7). `except` and `case` headers are sites too:
an expression may occur in them (R9).
"""

from __future__ import annotations

from collections.abc import Iterator
from weakref import WeakKeyDictionary

import libcst as cst

from patchq.engine.trees import BLOCKS, Tree

DEFS = (cst.FunctionDef, cst.ClassDef)
_CLAUSES = (cst.Else, cst.Finally, cst.ExceptHandler, cst.ExceptStarHandler, cst.MatchCase)
_known: WeakKeyDictionary[Tree, dict[int, tuple[Site, ...]]] = WeakKeyDictionary()
_NAMING = (cst.Import, cst.ImportFrom, cst.Global, cst.Nonlocal)


class Site:
    """One statement. It begins at `low`; all it holds ends before `high`."""

    __slots__ = ("_own", "high", "low", "node")

    def __init__(self, node: cst.CSTNode, low: int) -> None:
        self.node, self.low, self.high = node, low, low + 1
        self._own: tuple[cst.BaseExpression, ...] | None = None

    @property
    def own(self) -> tuple[cst.BaseExpression, ...]:
        """The expressions of the statement itself, without the blocks under it (R9)."""
        if self._own is None:
            self._own = tuple(_own(self.node))
        return self._own


def sites(tree: Tree, body: cst.CSTNode) -> tuple[Site, ...]:
    """Return the sites of a module, a class's or def's body, or one clause."""
    known = _known.setdefault(tree, {})
    if id(body) not in known:
        out: list[Site] = []
        _walk(body, out)
        known[id(body)] = tuple(out)
    return known[id(body)]


def parts(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Yield the blocks and clauses of a compound statement, in the order of the text."""
    for name in BLOCKS:
        part = getattr(node, name, None)
        for child in part if isinstance(part, list | tuple) else (part,):
            if isinstance(child, cst.CSTNode) and not isinstance(child, cst.BaseExpression):
                yield child


def _walk(node: cst.CSTNode, out: list[Site]) -> None:
    if isinstance(node, cst.Module | cst.BaseSuite):
        for line in node.body:
            for child in line.body if isinstance(line, cst.SimpleStatementLine) else (line,):
                _walk(child, out)
        return
    site = Site(node, len(out))
    out.append(site)
    if not isinstance(node, DEFS) and isinstance(node, (cst.BaseCompoundStatement, *_CLAUSES)):
        for part in parts(node):
            _walk(part, out)
    site.high = len(out)


def _own(node: cst.CSTNode) -> Iterator[cst.BaseExpression]:
    if isinstance(node, (*DEFS, *_NAMING)):
        return
    inner = {id(part) for part in parts(node)} if not isinstance(node, cst.Expr) else set()
    stack = [child for child in reversed(node.children) if id(child) not in inner]
    while stack:
        child = stack.pop()
        if isinstance(child, cst.BaseExpression):
            yield child
        if isinstance(child, cst.Lambda):
            continue
        names = (
            child.attr
            if isinstance(child, cst.Attribute)
            else child.keyword
            if isinstance(child, cst.Arg)
            else None
        )
        stack.extend(
            grandchild for grandchild in reversed(child.children) if grandchild is not names
        )
