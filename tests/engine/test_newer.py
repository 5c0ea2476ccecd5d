"""Syntax newer than the running Python: the same answers, by way of older words."""

import ast
import asyncio.base_events
import dataclasses
import enum
import inspect
import subprocess
import typing
from pathlib import Path

import pytest

from patchq.engine import bindings, definitions, newer, trees
from patchq.engine.spaces import Space

NEWER = '''\
type Pair[T: (int, str) = int] = tuple[
    T, T]
class Box[
    T, *Ts, **P
](list[T], metaclass=type):
    type Inner = Box[T]
    def put[U: Inner](self, item: T, *more: U) -> Pair[
        U
    ]:
        text = f"{item!r:>{len(more)}} {'a' "b"} {more['k'] if more else {}}"
        return text + f'{f"{(lambda: item)()}"}' 'c' f"""{
            self} {(yield)}"""
async def run[**P](): return [f"{x = }" async for x in aiter(P)]
try: pass
except OSError, ValueError: caught = t"{Box:{run}}"
'''


def lowered(text: bytes) -> ast.Module:
    tree = trees.tree(text, comments=True)
    assert isinstance(tree, trees.Tree)
    found = newer.lowered(tree)
    assert found is not None
    return found


def spaces(tree: ast.Module) -> list[tuple[object, ...]]:
    """Return all that is known of the namespaces of a tree, in an order of its own."""

    def said(space: Space) -> tuple[object, ...]:
        uses = sorted((use.name, use.typed, use.guarded) for use in space.uses)
        return str(space.kind), space.where, sorted(space.bound.items()), uses

    return sorted(said(space) for space in bindings.read(tree).all)


def test_what_is_new_is_put_into_what_every_python_reads():
    tree = lowered(NEWER.encode())

    alias, box, run, guard = tree.body
    assert isinstance(alias, newer.TypeAlias)
    assert [one.name for one in box.type_params] == ["T", "Ts", "P"]
    assert [one.name for one in run.type_params] == ["P"]
    assert ast.unparse(guard.handlers[0].type) == "(OSError, ValueError)"
    assert [node.lineno for node in tree.body] == [1, 3, 13, 14]
    assert box.body[-1].body[-1].lineno == 11
    assert guard.handlers[0].lineno == 15


MODULES = [dataclasses, enum, inspect, typing, asyncio.base_events, subprocess, ast]


@pytest.mark.slow
@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_a_text_that_python_reads_is_the_same_by_way_of_libcst(module):
    text = Path(module.__file__).read_bytes()
    own = ast.parse(text)

    assert spaces(lowered(text)) == spaces(own)
    assert definitions.of(lowered(text), text) == definitions.of(own, text)
