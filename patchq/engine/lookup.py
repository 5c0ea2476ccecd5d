"""Finds each name that a text uses as Python would, and says which are not there."""

from __future__ import annotations

import ast
import functools
from dataclasses import dataclass

from patchq.engine import bindings, definitions, runtime, syntax, trees
from patchq.engine.outlines import Outline
from patchq.engine.spaces import Binding, Kind, Space, Use

_CLASS = frozenset(
    {"__module__", "__qualname__", "__annotations__", "__class__", "__classdict__"}
    | {"__firstlineno__", "__static_attributes__", "__annotate__", "__conditional_annotations__"}
)


@dataclass(frozen=True, slots=True)
class Missing:
    """A use of a name that its text does not bind for it; builtins and stars may.

    `where` is the qualified name of the class or def around. `why` is empty for a name
    that nothing here binds; `local`: it is certain, since no outer namespace is asked.
    """

    name: str
    line: int
    where: str
    why: str = ""
    local: bool = False


@dataclass(frozen=True, slots=True)
class Names:
    """What a text looks up in vain, by line, and its outline.

    `known`: every name that is bound anywhere in it. `made`: it may have any other name,
    too, once it runs. `asked`: names whose absence it expects.
    """

    missing: tuple[Missing, ...]
    outline: Outline
    known: frozenset[str]
    made: bool
    asked: frozenset[str]


@functools.lru_cache(maxsize=256)
def names(data: bytes) -> Names | None:
    """Return what a text uses and does not bind, None where it cannot be read."""
    tree = syntax.parsed(data)
    if not isinstance(tree, ast.Module):
        return None
    try:
        found = bindings.read(tree)
    except RecursionError:  # a test of `if` that is nested beyond all reason
        return None
    missing = [
        one
        for space in found.all
        for use in space.uses
        if not use.guarded and (one := _find(use, space)) is not None
        if not _hushed(data, use)
    ]
    known = frozenset(name for space in found.all for name in space.bound)
    missing.sort(key=lambda one: one.line)
    outline = definitions.outline(data)
    assert isinstance(outline, Outline)
    made = runtime.makes(tree, data)
    return Names(tuple(missing), outline, known, made, runtime.asked(tree, data))


_rows = functools.lru_cache(maxsize=1)(trees.rows)


def _hushed(data: bytes, use: Use) -> bool:
    """True where the line itself says that the name is known to be undefined.

    What only type checkers and linters would look up, any word to them excuses.
    """
    lines = _rows(data)
    text = lines[use.line - 1] if use.line <= len(lines) else b""
    if use.typed and (b"# type: ignore" in text or b"# noqa" in text):
        return True
    return b"noqa: F821" in text


def _find(use: Use, start: Space) -> Missing | None:
    key = start.key(use.name)
    why = ""
    inner: Space | None = None
    for space in start.outwards():
        if space.kind is Kind.CLASS and use.name in _CLASS:
            return None
        if key in space.globals:
            return None
        # A class's names are seen by its own statements and type parameters only.
        hidden = space.kind is Kind.CLASS and not use.typed and not _direct(space, start, inner)
        inner = space
        how = Binding(0) if hidden else space.bound.get(key, Binding(0))
        if not how:
            continue
        trouble = _trouble(how, use, here=space is start)
        if trouble is None:
            return None
        if space.kind in (Kind.FUNCTION, Kind.COMPREHENSION):
            return Missing(use.name, use.line, start.where, trouble, local=True)
        why = why or trouble
    return Missing(use.name, use.line, start.where, why)


def _direct(space: Space, start: Space, inner: Space | None) -> bool:
    """True where nothing but type parameters lies between a use and its class."""
    return space is start or (inner is start and start.kind is Kind.TYPES)


def _trouble(how: Binding, use: Use, *, here: bool) -> str | None:
    if how & Binding.PLAIN or (how & Binding.TYPED and use.typed):
        return None
    if how & Binding.CAUGHT:
        if not here or use.name in use.caught:
            return None
        return f"the only {use.name} is that of an `except ... as`, and gone after the handler"
    if how & Binding.TYPED:
        return f"{use.name} is bound under TYPE_CHECKING only"
    return f"{use.name} is changed or deleted here and never given a value"
