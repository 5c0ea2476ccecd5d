"""What a module imports, and which names it has: enough to resolve an import.

Names are collected generously (every branch of `if` and `try`, bare annotations,
`global` in a def), since a name that is there must never be blamed. A module that
makes names at run time (`__getattr__`, `globals()`, `sys.modules[__name__]`) is
`anything`. The running Python's parser reads nearly every file; libcst the rest.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterable, Iterator

from patchq.engine import outlines, trees
from patchq.engine.outlines import Import, Outline
from patchq.engine.trees import Fault


@functools.lru_cache(maxsize=1024)
def outline(data: bytes) -> Outline | Fault:
    """Return the outline of a Python text, or why it does not parse."""
    parsed = trees.python(data)
    if isinstance(parsed, ast.Module):
        reader = _Reader()
        try:
            reader.block(parsed.body, "", guarded=False, scope=True)
        except RecursionError:
            # Python runs it; a thousand `elif` are no fault, and nothing is known of it.
            reader.anything = True
        return reader.outline()
    tree = trees.tree(data)
    if isinstance(tree, Fault):
        return tree
    from patchq.engine import newer

    try:
        return newer.outline(tree)
    except RecursionError:
        return Outline((), frozenset(), (), anything=True, extended=False)


def no_module(data: bytes, name: str) -> bool:
    """Return True if a file uses a name as no module can be: called, a base, a decorator."""
    parsed = trees.python(data)
    if not isinstance(parsed, ast.Module):
        return False
    return any(
        isinstance(used, ast.Name) and used.id == name
        for node in ast.walk(parsed)
        for used in _called(node)
    )


def _called(node: ast.AST) -> Iterable[ast.expr]:
    match node:
        case ast.Call():
            return (node.func,)
        case ast.ClassDef():
            return (*node.bases, *node.decorator_list)
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            return node.decorator_list
        case ast.ExceptHandler(type=ast.expr() as caught):
            return (caught,)
        case _:
            return ()


class _Reader:
    """Walks statements, and expressions only where a module's own names may hide."""

    def __init__(self) -> None:
        self.imports: list[Import] = []
        self.names: set[str] = set()
        self.stars: list[tuple[int, str]] = []
        self.anything = False

    def outline(self) -> Outline:
        anything = self.anything or "__getattr__" in self.names
        extended = "__path__" in self.names
        return Outline(
            tuple(self.imports), frozenset(self.names), tuple(self.stars), anything, extended
        )

    def block(self, body: Iterable[ast.stmt], where: str, *, guarded: bool, scope: bool) -> None:
        for node in body:
            self.statement(node, where, guarded, scope)

    def statement(self, node: ast.stmt, where: str, guarded: bool, scope: bool) -> None:
        match node:
            case ast.Import() | ast.ImportFrom():
                self._import(node, where, guarded, scope)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                if scope:
                    self.names.add(node.name)
                inner = f"{where}.{node.name}" if where else node.name
                self.block(node.body, inner, guarded=guarded, scope=False)
            case ast.Global():
                self.names.update(node.names)
            case ast.Try() | ast.TryStar():
                expected = guarded or any(_expects(handler) for handler in node.handlers)
                self.block(node.body, where, guarded=expected, scope=scope)
                for handler in node.handlers:
                    self.block(handler.body, where, guarded=guarded, scope=scope)
                self.block(node.orelse, where, guarded=guarded, scope=scope)
                self.block(node.finalbody, where, guarded=guarded, scope=scope)
            case _:
                self._other(node, where, guarded, scope)

    def _other(self, node: ast.stmt, where: str, guarded: bool, scope: bool) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.stmt):
                self.statement(child, where, guarded, scope)
            elif isinstance(child, ast.match_case):
                if scope:
                    self._bound(child.pattern)
                self.block(child.body, where, guarded=guarded, scope=scope)
            elif scope:
                self._bound(child)

    def _bound(self, node: ast.AST) -> None:
        """Names that an expression or target of module level binds, or makes at run time."""
        for child in ast.walk(node):
            match child:
                case ast.Name(ctx=ast.Store()):
                    self.names.add(child.id)
                case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                    self.names.add(name)
                case ast.MatchMapping(rest=str(name)):
                    self.names.add(name)
                case ast.Name(id=name) if name in outlines.MADE:
                    self.anything = True
                case ast.Attribute(attr="modules", value=ast.Name(id="sys")):
                    self.anything = True
                case ast.Attribute(
                    attr="append" | "extend" | "insert", value=ast.Name(id="__path__")
                ):
                    self.names.add("__path__")

    def _import(
        self, node: ast.Import | ast.ImportFrom, where: str, guarded: bool, scope: bool
    ) -> None:
        for level, module, name, bound in _brought(node):
            self.imports.append(Import(level, module, name, node.lineno, where, guarded))
            if scope and name == "*":
                self.stars.append((level, module))
            elif scope:
                self.names.add(bound)


def _brought(node: ast.Import | ast.ImportFrom) -> Iterator[tuple[int, str, str | None, str]]:
    for alias in node.names:
        if isinstance(node, ast.ImportFrom):
            yield node.level, node.module or "", alias.name, alias.asname or alias.name
        else:
            yield 0, alias.name, None, alias.asname or alias.name.partition(".")[0]


def _expects(handler: ast.ExceptHandler) -> bool:
    """True for a handler that an import which fails would reach."""
    if handler.type is None:
        return True
    caught = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(isinstance(one, ast.Name) and one.id in outlines.WILL_FAIL for one in caught)
