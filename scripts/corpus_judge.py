"""How a merged text stands to the truth, in four grades; `scripts/corpus.py` asks.

exact: the same bytes · tree: the same syntax tree, so layout and comments aside ·
order: the same up to an order that Python does not mind (imported names, runs of
imports, keyword arguments, sets, dicts with constant keys, `__all__`, runs of
definitions and constants) · wrong: none of these, or not Python.
"""

from __future__ import annotations

import ast
import functools
import itertools
import warnings
from collections.abc import Iterable
from typing import Literal

Grade = Literal["exact", "tree", "order", "wrong"]
_ACCESSORS = frozenset({"setter", "getter", "deleter", "overload"})


def grade(result: str, truth: str) -> Grade:
    """Return how near a result is to the truth."""
    if result == truth:
        return "exact"
    mine, wanted = tree(result), tree(truth)
    if mine is None or wanted is None:
        return "wrong"
    if ast.dump(mine) == ast.dump(wanted):
        return "tree"
    return "order" if canonical(result) == canonical(truth) else "wrong"


def tree(text: str) -> ast.Module | None:
    """Return the syntax tree of a text; None where it is not Python."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(text)
        except (SyntaxError, ValueError, RecursionError):
            return None


@functools.lru_cache(maxsize=8)
def canonical(text: str) -> str:
    """Return the tree of a text with everything sorted that may be."""
    parsed = tree(text)
    assert parsed is not None
    return ast.dump(_Sorted().visit(parsed))


class _Sorted(ast.NodeTransformer):
    """Sorts, innermost first."""

    def visit(self, node: ast.AST) -> ast.AST:
        self.generic_visit(node)
        match node:
            case ast.Call(keywords=words) if all(word.arg for word in words):
                node.keywords = sorted(words, key=lambda word: str(word.arg))
            case ast.Set(elts=items):
                node.elts = sorted(items, key=ast.dump)
            case ast.Dict(keys=keys, values=values) if keys and all(
                isinstance(key, ast.Constant) for key in keys
            ):
                rows = sorted(zip(keys, values, strict=True), key=lambda row: ast.dump(row[0]))
                node.keys, node.values = map(list, zip(*rows, strict=True))
            case ast.Assign(
                targets=[ast.Name(id="__all__")],
                value=ast.List(elts=items) | ast.Tuple(elts=items),
            ):
                node.value.elts = sorted(items, key=ast.dump)
        for field in ("body", "orelse", "finalbody"):
            block = getattr(node, field, None)
            if isinstance(block, list):
                declares = isinstance(node, ast.Module | ast.ClassDef)
                setattr(node, field, list(_runs(block, declares)))
        return node


def _runs(block: list[ast.stmt], declares: bool) -> Iterable[ast.stmt]:
    for kind, run in itertools.groupby(block, key=lambda one: _kind(one, declares)):
        if kind == "import":
            yield from _imports(run)
        elif kind == "definition":
            yield from sorted(run, key=lambda one: (_name(one), ast.dump(one)))
        else:
            yield from run


def _imports(run: Iterable[ast.stmt]) -> list[ast.stmt]:
    """One line for each imported name, each once."""
    lines: dict[str, ast.stmt] = {}
    for one in run:
        for name in one.names:
            line = (
                ast.ImportFrom(one.module, [name], one.level)
                if isinstance(one, ast.ImportFrom)
                else ast.Import([name])
            )
            lines[ast.dump(line)] = line
    return [lines[key] for key in sorted(lines)]


def _kind(node: ast.stmt, declares: bool) -> str:
    match node:
        case ast.Import() | ast.ImportFrom():
            return "import"
        case ast.ClassDef() if declares:
            return "definition"
        case (
            ast.FunctionDef(decorator_list=decorators)
            | ast.AsyncFunctionDef(decorator_list=decorators)
        ):
            said = {
                getattr(part, "attr", getattr(part, "id", ""))
                for one in decorators
                for part in ast.walk(one)
            }
            return "definition" if not said & _ACCESSORS else ""
        case (
            ast.Assign(targets=[ast.Name(), *_], value=value)
            | ast.AnnAssign(target=ast.Name(), value=value)
        ) if declares:
            parts = ast.walk(value) if value is not None else ()
            plain = not any(isinstance(one, ast.Call | ast.Name) for one in parts)
            return "definition" if plain else ""
    return ""


def _name(node: ast.stmt) -> str:
    if isinstance(node, ast.Assign | ast.AnnAssign):
        return (node.targets[0] if isinstance(node, ast.Assign) else node.target).id
    return node.name
