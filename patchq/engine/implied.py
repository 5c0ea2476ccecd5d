"""The scopes of two texts, and what a sketch may ask of their difference: values.

Each difference is an item, with the forms in which a sketch may ask for it, from
what says the least to what says all. Who finds them: `members` and `statements`.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from patchq.engine import wording

Def = ast.FunctionDef | ast.AsyncFunctionDef
DEFS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
# (mark, statement): the mark is "", "given" or "absent".
Form = tuple[tuple[str, ast.stmt], ...]
SAYS_NOTHING = ast.Expr(wording.GAP)
# Statements that a sketch repeats; of a longer block or def it asks that it is there.
FEW = 4


@dataclass(frozen=True, slots=True, eq=False)
class Item:
    """One difference. `scope`: the classes and defs around it in the new text, outermost first.

    `line` orders items; `lines` are its lines in the new text, `gone` in the old one.
    `head`: the form is a class or def that lends its header to the scope itself.
    `loose`: it may be left out where its hunk is guarded without it.
    """

    scope: tuple[ast.stmt, ...]
    line: int
    lines: frozenset[int]
    gone: frozenset[int]
    forms: tuple[Form, ...]
    head: bool = False
    loose: bool = False


class Scope:
    """A module, class or def and its own statements, at any depth."""

    def __init__(self, node: ast.AST, way: tuple[ast.stmt, ...]) -> None:
        self.node, self.way = node, way
        self.own: list[ast.stmt] = []
        self.said: list[str] = []
        self.keys: set[str] = set()
        self.imported: set[tuple[object, ...]] = set()
        self.bound: set[str] = set()

    def take(self, statement: ast.stmt) -> None:
        """Note one of its statements."""
        self.own.append(statement)
        self.said.append(wording.key(wording.header(statement)))
        self.keys.add(self.said[-1])
        if isinstance(statement, ast.Import | ast.ImportFrom):
            self.imported.update(imported(statement))
        for target in targets(statement):
            self.bound.add(target)


Key = tuple[str, ...]


def scopes(tree: ast.Module) -> dict[Key, Scope]:
    """Return the scopes of a module by qualified name; of two with one name the last."""
    out: dict[Key, Scope] = {(): Scope(tree, ())}

    def walk(block: Sequence[ast.stmt], at: Key) -> None:
        for node in block:
            if isinstance(node, DEFS):
                inner = (*at, node.name)
                out[inner] = Scope(node, (*out[at].way, node))
                walk(node.body, inner)
                continue
            out[at].take(node)
            for inside in wording.blocks(node):
                walk(inside, at)

    walk(tree.body, ())
    return out


def imported(node: ast.stmt) -> Iterator[tuple[object, ...]]:
    """Yield what tells one imported name from others, and the name as the tree has it."""
    if isinstance(node, ast.Import):
        yield from ((0, None, alias.name, alias.asname) for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        yield from ((node.level, node.module, alias.name, alias.asname) for alias in node.names)


def rows(node: ast.stmt, *, whole: bool = False) -> frozenset[int]:
    """Return the lines of a statement; of a compound one those of its header."""
    first = min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", ()))])
    last = node.end_lineno or node.lineno
    body = getattr(node, "body", None)
    if not whole and isinstance(body, list) and body:
        last = max(node.lineno, body[0].lineno - 1)
    return frozenset(range(first, last + 1))


def targets(node: ast.stmt) -> Iterator[str]:
    """Yield the plain names that an assignment or a loop binds."""
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    yield from (target.id for target in targets if isinstance(target, ast.Name))


def def_(node: Def, arguments: list[ast.arg], body: list[ast.stmt]) -> Def:
    """Return a def of the same name and kind."""
    out = copy.copy(node)
    out.args = ast.arguments([], arguments, None, [], [], None, [])
    out.body, out.decorator_list, out.returns = body, [], None
    return out


def stub(node: ast.stmt) -> ast.stmt:
    """Return a class or def as a place for statements: its name, and `self`."""
    if isinstance(node, ast.ClassDef):
        return ast.ClassDef(node.name, [], [], [], [])
    assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    first = [arg for arg in node.args.args[:1] if arg.arg in ("self", "cls")]
    return def_(node, [ast.arg(arg.arg) for arg in first], [])


def any_value(name: str) -> ast.stmt:
    """Return `name = ...`."""
    return ast.Assign([ast.Name(name, ast.Store())], wording.GAP)


def plain(node: ast.stmt) -> ast.stmt:
    """Return an assignment without its annotation, which is seldom what a patch is for."""
    if isinstance(node, ast.AnnAssign) and node.value is not None:
        return ast.Assign([node.target], node.value)
    return node


def silent(node: ast.stmt) -> bool:
    """Return True for a statement that says nothing: `...`, pass, a docstring (R6)."""
    said = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return said or isinstance(node, ast.Pass)
