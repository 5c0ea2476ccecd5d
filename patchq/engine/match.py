"""Expressions of a sketch against expressions of a file: R1 to R5.

`match` yields every way in which a pattern fits, as the bindings of its holes.
Layout, comments, parentheses and quotes are in libcst's trees but never
compared. A binding is the *print* of a tree: what it says without its layout.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import libcst as cst

from patchq.engine import imprints, strings
from patchq.engine.budget import Budget

Bindings = Mapping[str, object]

# `isinstance` with libcst's abstract classes is slow: asked once per kind.
_EXPRESSIONS: dict[type, bool] = {}
HOLE = re.compile(r"_[a-z](?:[a-z0-9_]*[a-z0-9])?_")


def hole(node: object) -> str | None:
    """Return the name of a hole, `_` or `_x_`, None for anything else (R2)."""
    if type(node) is cst.Name and (node.value == "_" or HOLE.fullmatch(node.value)):
        return node.value
    return None


@functools.lru_cache(maxsize=2048)
def holes(node: cst.CSTNode) -> frozenset[str]:
    """Return the names of the holes of a pattern that must agree, without `_`."""
    found = {name} if (name := hole(node)) and name != "_" else set()
    return frozenset(found.union(*(holes(child) for child in node.children)))


def fits(pattern: object, target: object, budget: Budget) -> bool:
    """Return True if a pattern fits in some way."""
    return next(match(pattern, target, {}, budget), None) is not None


def match(p: object, t: object, env: Bindings, budget: Budget) -> Iterator[Bindings]:
    """Yield the bindings of every way in which the pattern `p` fits the tree `t`."""
    if type(p) is cst.Ellipsis:
        if _is_expression(type(t)):
            yield env
    elif name := hole(p):
        yield from _bind(name, t, env)
    elif type(p) in strings.KINDS:
        if type(t) in strings.KINDS:
            yield from _match_pieces(strings.pieces(p), strings.pieces(t), env, budget)
    elif type(p) is not type(t):
        return
    elif special := _SPECIAL.get(type(p)):
        yield from special(p, t, env, budget)
    elif isinstance(p, list | tuple):
        assert isinstance(t, list | tuple)
        yield from pairs(p, t, env, budget)
    elif dataclasses.is_dataclass(p):
        names = imprints.fields(type(p))
        yield from chain([(getattr(p, n), getattr(t, n)) for n in names], env, budget)
    elif p == t:
        yield env


def chain(
    todo: Sequence[tuple[object, object]], env: Bindings, budget: Budget
) -> Iterator[Bindings]:
    """Yield the bindings under which every pair fits."""
    if not todo:
        yield env
        return
    for bound in match(*todo[0], env, budget):
        yield from chain(todo[1:], bound, budget)


def pairs(
    ps: Sequence[object], ts: Sequence[object], env: Bindings, budget: Budget
) -> Iterator[Bindings]:
    """Match one to one, in order."""
    if len(ps) == len(ts):
        yield from chain(list(zip(ps, ts, strict=True)), env, budget)


def subset(
    ps: Sequence[object], ts: Sequence[object], env: Bindings, budget: Budget
) -> Iterator[Bindings]:
    """Match each pattern to a target of its own, in any order (R3)."""
    if not ps:
        yield env
        return
    if len(ps) > len(ts):
        return
    for place, target in enumerate(ts):
        budget.spend()
        for bound in match(ps[0], target, env, budget):
            yield from subset(ps[1:], [*ts[:place], *ts[place + 1 :]], bound, budget)


def gapped(
    ps: Sequence[object], ts: Sequence[object], env: Bindings, budget: Budget
) -> Iterator[Bindings]:
    """Match in order, any number of targets where a gap `...` stands (R4)."""
    if not ps:
        if not ts:
            yield env
        return
    if is_gap(ps[0]):
        for skipped in range(len(ts) + 1):
            budget.spend()
            yield from gapped(ps[1:], ts[skipped:], env, budget)
    elif ts:
        for bound in match(ps[0], ts[0], env, budget):
            yield from gapped(ps[1:], ts[1:], bound, budget)


def is_gap(node: object) -> bool:
    """Return True for the `...` that stands for further items of a collection."""
    kind = type(node)
    if kind is cst.Arg:
        assert isinstance(node, cst.Arg)
        return node.keyword is None and not node.star and type(node.value) is cst.Ellipsis
    if kind is cst.Element or kind is cst.StarredDictElement:
        assert isinstance(node, cst.Element | cst.StarredDictElement)
        return type(node.value) is cst.Ellipsis
    return kind is cst.Ellipsis


def arguments(
    ps: Sequence[cst.Arg], ts: Sequence[cst.Arg], env: Bindings, budget: Budget
) -> Iterator[Bindings]:
    """Match positions in order, keywords by name; further keywords only with a gap (R4)."""
    wanted = {arg.keyword.value: arg.value for arg in ps if arg.keyword}
    there = {arg.keyword.value: arg.value for arg in ts if arg.keyword}
    if not wanted.keys() <= there.keys():
        return
    if len(wanted) != len(there) and not any(map(is_gap, ps)):
        return
    todo = [(value, there[name]) for name, value in wanted.items()]
    positions = [arg for arg in ps if not arg.keyword], [arg for arg in ts if not arg.keyword]
    for bound in gapped(*positions, env, budget):
        yield from chain(todo, bound, budget)


def _bind(name: str, target: object, env: Bindings) -> Iterator[Bindings]:
    if not _is_expression(type(target)):
        return
    if name == "_":
        yield env
    elif name not in env:
        yield {**env, name: imprints.imprint(target)}
    elif env[name] == imprints.imprint(target):
        yield env


def _is_expression(kind: type) -> bool:
    found = _EXPRESSIONS.get(kind)
    if found is None:
        found = _EXPRESSIONS[kind] = issubclass(kind, cst.BaseExpression)
    return found


def _call(p: cst.Call, t: cst.Call, env: Bindings, budget: Budget) -> Iterator[Bindings]:
    for bound in match(p.func, t.func, env, budget):
        yield from arguments(p.args, t.args, bound, budget)


def _tuple(p: cst.Tuple, t: cst.Tuple, env: Bindings, budget: Budget) -> Iterator[Bindings]:
    yield from gapped(p.elements, t.elements, env, budget)


def _subscript(
    p: cst.Subscript, t: cst.Subscript, env: Bindings, budget: Budget
) -> Iterator[Bindings]:
    for bound in match(p.value, t.value, env, budget):
        yield from gapped(imprints.slices(p), imprints.slices(t), bound, budget)


def _attribute(
    p: cst.Attribute, t: cst.Attribute, env: Bindings, budget: Budget
) -> Iterator[Bindings]:
    if p.attr.value == t.attr.value:
        yield from match(p.value, t.value, env, budget)


def _collection(
    p: cst.List | cst.Set | cst.Dict,
    t: cst.List | cst.Set | cst.Dict,
    env: Bindings,
    budget: Budget,
) -> Iterator[Bindings]:
    named = [item for item in p.elements if not is_gap(item)]
    open_ended = len(named) < len(p.elements)
    if not open_ended and len(named) != len(t.elements):
        return
    if isinstance(p, cst.List) and not open_ended:
        yield from pairs(named, t.elements, env, budget)
        return
    # What has no hole is sought first: it fits once or not at all.
    named.sort(key=lambda item: len(holes(item)))
    yield from subset(named, t.elements, env, budget)


_SPECIAL: dict[type, Callable[[Any, Any, Bindings, Budget], Iterator[Bindings]]] = {
    cst.Call: _call,
    cst.Tuple: _tuple,
    cst.Subscript: _subscript,
    cst.Attribute: _attribute,
    cst.List: _collection,
    cst.Set: _collection,
    cst.Dict: _collection,
}


def _match_pieces(
    ps: Sequence[strings.Piece], ts: Sequence[strings.Piece], env: Bindings, budget: Budget
) -> Iterator[Bindings]:
    if len(ps) != len(ts):
        return
    todo: list[tuple[object, object]] = []
    for p, t in zip(ps, ts, strict=True):
        if isinstance(p, cst.FormattedStringExpression):
            if not isinstance(t, cst.FormattedStringExpression) or bool(p.equal) != bool(t.equal):
                return
            todo += [(p.expression, t.expression), (p.conversion, t.conversion)]
            todo += [(imprints.spec(p), imprints.spec(t))]
        elif isinstance(t, cst.FormattedStringExpression) or p != t:
            return
    yield from chain(todo, env, budget)
