"""Definitions that a later one in the same block replaces, so that they do nothing.

What an automatic merge or a hunk at the wrong place leaves behind: the same def
twice. Only two in one block are compared: the branches of `if` and `try` are
alternatives. A first one that is used in between, or whose decorator may have
kept it (a registry, `overload`), is no fault; nor is a name of underscores alone.
"""

from __future__ import annotations

import ast
import functools
from collections import Counter
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass

from patchq.engine import syntax, trees
from patchq.engine.guards import last
from patchq.engine.verdict import Finding

_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
# Decorators that keep what they decorate somewhere else, whatever else they do.
_KEEP = frozenset("overload register dispatch impl register_fake add_handler".split())
# Decorators that only give back what they decorate, or a wrapper of it.
_PLAIN = frozenset(
    "property cached_property staticmethod classmethod abstractmethod override final wraps "
    "lru_cache cache contextmanager asynccontextmanager dataclass no_grad inference_mode "
    "abstractproperty deprecated runtime_checkable total_ordering jit compile".split()
)
_ACCESSORS = frozenset({"setter", "deleter", "getter"})
# More than these of one file are one fault, and would take long to say.
_MOST = 50
_LOSE = _PLAIN | _ACCESSORS


@dataclass(frozen=True, slots=True)
class Duplicate:
    """A definition at `line` that replaces the one at `first`; `where` is the scope of both."""

    name: str
    line: int
    first: int
    where: str


def check(
    before: Mapping[str, bytes | None],
    after: Mapping[str, bytes | None],
    origin: Mapping[str, str],
) -> Iterator[tuple[Finding, bool]]:
    """Yield the duplicates of touched files; True where there were as many before.

    `origin`: the path that each renamed file had below the patch.
    """
    for path, data in after.items():
        if data is None or not path.endswith(".py"):
            continue
        found = duplicates(data)
        had = before.get(origin.get(path, path)) if found else None
        old = Counter((one.where, one.name) for one in duplicates(had)) if had else Counter()
        told = Counter[bool]()
        for one in found:
            old[one.where, one.name] -= 1
            was = old[one.where, one.name] >= 0
            told[was] += 1
            if told[was] <= _MOST:
                message = f"`{one.name}` is defined a second time"
                why = f"it replaces the one at line {one.first}, which nothing has used"
                yield Finding("duplicate", path, one.line, one.where, message, why), was


@functools.lru_cache(maxsize=256)
def duplicates(data: bytes) -> tuple[Duplicate, ...]:
    """Return the definitions of a text that replace an unused one.

    Example:
        >>> duplicates(b"class A:\\n    def f(self): ...\\n    def f(self, x): ...\\n")
        (Duplicate(name='f', line=3, first=2, where='A'),)
    """
    tree = syntax.parsed(data)
    if not isinstance(tree, ast.Module):
        return ()
    found: list[Duplicate] = []
    todo: list[tuple[ast.AST, str]] = [(tree, "")]
    while todo:
        node, where = todo.pop()
        for name in trees.BLOCKS:
            block = getattr(node, name, None)
            if isinstance(block, list):
                found += _block(block, where)
                for one in block:
                    inner = where
                    if isinstance(one, _Definition):
                        inner = f"{where}.{one.name}" if where else one.name
                    todo.append((one, inner))
    return tuple(sorted(found, key=lambda one: one.line))


def _block(block: list[ast.AST], where: str) -> Iterator[Duplicate]:
    names = [one.name for one in block if isinstance(one, _Definition)]
    if len(names) == len(set(names)):
        return
    standing: dict[str, _Definition] = {}
    for one in block:
        if not isinstance(one, _Definition):
            for used in _mentioned(one):
                standing.pop(used, None)
            continue
        mentioned = set(_mentioned(one))
        first = standing.get(one.name)
        if first is not None and one.name.strip("_") and _lost(first, one, mentioned):
            yield Duplicate(one.name, one.lineno, first.lineno, where)
        for used in mentioned:
            standing.pop(used, None)
        standing[one.name] = one


def _lost(first: _Definition, second: _Definition, mentioned: Container[str]) -> bool:
    """True where nothing can hold on to the first of two."""
    try:
        same = [ast.dump(one) for one in first.decorator_list] == [
            ast.dump(one) for one in second.decorator_list
        ]
    except RecursionError:
        return False
    names = [last(one.func if isinstance(one, ast.Call) else one) for one in first.decorator_list]
    if any(name in _KEEP or not (same or name in _LOSE) for name in names):
        return False
    # `@x.setter` twice says x, and loses the first setter all the same.
    return second.name not in mentioned or (same and bool(_ACCESSORS.intersection(names)))


def _mentioned(node: ast.AST) -> Iterator[str]:
    """Names that running a statement looks up at once: not those in bodies of defs."""
    todo = [node]
    while todo:
        one = todo.pop()
        match one:
            case ast.Name(id=name):
                yield name
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                todo += [*one.decorator_list, *one.args.defaults]
                todo += [default for default in one.args.kw_defaults if default is not None]
            case ast.Lambda():
                todo += one.args.defaults
            case ast.Delete() | ast.Global() | ast.Nonlocal():
                yield from _names(one)
            case _:
                todo += ast.iter_child_nodes(one)


def _names(node: ast.AST) -> Iterator[str]:
    return (one.id for one in ast.walk(node) if isinstance(one, ast.Name))
