"""What a module imports, and which names it has: enough to resolve an import.

Names are collected generously (every branch of `if` and `try`, bare annotations,
`global` in a def), since a name that is there must never be blamed. A module that
makes names at run time (`__getattr__`, `globals()`, `sys.modules[__name__]`) is
`anything`.
"""

from __future__ import annotations

import ast
import functools
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from patchq.engine import exports, guards, runtime, syntax
from patchq.engine.outlines import Import, Outline
from patchq.engine.trees import Fault


@functools.lru_cache(maxsize=1024)
def outline(data: bytes) -> Outline | Fault:
    """Return the outline of a Python text, or why it does not parse."""
    parsed = syntax.parsed(data)
    if isinstance(parsed, Fault):
        return parsed
    if parsed is None:
        return Outline(anything=True)
    return of(parsed, data)


def of(tree: ast.Module, data: bytes) -> Outline:
    """Return the outline of a text that was parsed."""
    reader = _Reader(data)
    try:
        reader.block(tree.body, _In())
    except RecursionError:
        # Python runs it; a thousand `elif` are no fault, and nothing is known of it.
        return replace(reader.outline(), anything=True)
    found = reader.outline()
    return replace(found, anything=True) if runtime.makes(tree, data) else found


def no_module(data: bytes, name: str) -> bool:
    """Return True if a file uses a name as no module can be: called, a base, a decorator."""
    parsed = syntax.parsed(data)
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


@dataclass(frozen=True, slots=True)
class _In:
    """Where a statement stands: `scope` is True at module level."""

    where: str = ""
    scope: bool = True
    guarded: bool = False
    typed: bool = False


class _Reader:
    """Walks statements, and expressions only where a module's own names may hide."""

    def __init__(self, data: bytes) -> None:
        self.mentions = data.count(b"__all__")
        self.imports: list[Import] = []
        self.stars: list[tuple[int, str]] = []
        # How often each name is bound, and how often so for type checkers only.
        self.names: Counter[str] = Counter()
        self.typed: Counter[str] = Counter()
        self.origins: dict[str, tuple[int, str, str]] = {}
        self.listed: dict[str, int] = {}
        self.lists = 0

    def outline(self) -> Outline:
        # Where it is mentioned and not understood, it may list anything.
        known = 0 < self.lists == self.mentions
        origins = {name: one for name, one in self.origins.items() if self.names[name] == 1}
        return Outline(
            tuple(self.imports),
            frozenset(self.names),
            tuple(self.stars),
            "__getattr__" in self.names,
            "__path__" in self.names,
            frozenset(name for name, count in self.typed.items() if count == self.names[name]),
            origins,
            self.listed if known else None,
            hides=exports.NAME not in self.names,
        )

    def block(self, body: Iterable[ast.stmt], place: _In) -> None:
        for node in body:
            self.statement(node, place)

    def statement(self, node: ast.stmt, place: _In) -> None:
        match node:
            case ast.Import() | ast.ImportFrom():
                self._import(node, place)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                if place.scope:
                    self._bind(node.name, place)
                inner = f"{place.where}.{node.name}" if place.where else node.name
                self.block(node.body, replace(place, where=inner, scope=False))
            case ast.Global():
                for name in node.names:
                    self._bind(name, place)
            case ast.If() if (typing := guards.type_checking(node.test)) is not None:
                self.block(node.body, replace(place, typed=place.typed or typing))
                self.block(node.orelse, replace(place, typed=place.typed or not typing))
            case ast.Try() | ast.TryStar():
                # Either branch may be missing, as long as one of them is there.
                expected = guards.catches(node.handlers, guards.FAILED_IMPORT)
                inside = replace(place, guarded=place.guarded or expected)
                self.block(node.body, inside)
                for handler in node.handlers:
                    tried = _tries_import(node) and guards.catches([handler], guards.FAILED_IMPORT)
                    self.block(handler.body, inside if tried else place)
                self.block(node.orelse, place)
                self.block(node.finalbody, place)
            case _:
                if isinstance(node, ast.With | ast.AsyncWith):
                    expected = guards.suppresses(node, guards.FAILED_IMPORT)
                    place = replace(place, guarded=place.guarded or expected)
                self._other(node, place)

    def _other(self, node: ast.stmt, place: _In) -> None:
        if self.mentions and place.scope and not hasattr(node, "body"):
            found = exports.listed(node)
            if found is not None and exports.mentions(node):
                self.lists += 1
                self.listed.update(found)
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.stmt):
                self.statement(child, place)
            elif isinstance(child, ast.match_case):
                if place.scope:
                    self._bound(child.pattern, place)
                self.block(child.body, place)
            elif place.scope:
                self._bound(child, place)

    def _bound(self, node: ast.AST, place: _In) -> None:
        """Names that an expression or target of module level binds."""
        for child in ast.walk(node):
            match child:
                case ast.Name(ctx=ast.Store()):
                    self._bind(child.id, place)
                case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                    self._bind(name, place)
                case ast.MatchMapping(rest=str(name)):
                    self._bind(name, place)
                case ast.Attribute(
                    attr="append" | "extend" | "insert", value=ast.Name(id="__path__")
                ):
                    self._bind("__path__", place)

    def _bind(self, name: str, place: _In) -> None:
        self.names[name] += 1
        if place.typed:
            self.typed[name] += 1

    def _import(self, node: ast.Import | ast.ImportFrom, place: _In) -> None:
        for level, module, name, bound in _brought(node):
            line, guarded, typed = node.lineno, place.guarded, place.typed
            self.imports.append(Import(level, module, name, line, place.where, guarded, typed))
            if place.scope and name == "*":
                self.stars.append((level, module))
            elif place.scope:
                self._bind(bound, place)
                if name is not None and not guarded:
                    self.origins[bound] = (level, module, name)


def _brought(node: ast.Import | ast.ImportFrom) -> Iterator[tuple[int, str, str | None, str]]:
    for alias in node.names:
        if isinstance(node, ast.ImportFrom):
            yield node.level, node.module or "", alias.name, alias.asname or alias.name
        else:
            yield 0, alias.name, None, alias.asname or alias.name.partition(".")[0]


def _tries_import(node: ast.Try | ast.TryStar) -> bool:
    return any(isinstance(one, ast.Import | ast.ImportFrom) for one in node.body)
