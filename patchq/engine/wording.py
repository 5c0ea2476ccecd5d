"""Statements of a file in the words of a sketch: holes for what a patch did not bring.

Works on the running Python's own trees, whose text has no layout and no comments.
"""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Iterator, Mapping, Sequence

from patchq.engine import match

GAP = ast.Constant(...)
# Characters of a text that is more than a name.
_LONG = 40
_BODIES = ("body", "orelse", "handlers", "finalbody", "cases")


def parse(data: bytes) -> ast.Module:
    """Return the tree of a text, numbers spelt as they are there. Raises: SyntaxError."""
    tree = ast.parse(data)
    rows = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
    spelt: ast.Module = _Spelt(rows).visit(tree)
    return spelt


class _Spelt(ast.NodeTransformer):
    """Numbers as names, which are written as they stand: 0x10 is not 16 in a sketch (R5)."""

    def __init__(self, rows: list[bytes]) -> None:
        self.rows = rows

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        """Replace a number that Python would spell in another way."""
        if isinstance(node.value, int | float | complex) and not isinstance(node.value, bool):
            row = self.rows[node.lineno - 1] if node.lineno <= len(self.rows) else b""
            text = row[node.col_offset : node.end_col_offset].decode(errors="replace")
            if text != repr(node.value) and re.fullmatch(r"[\w.+-]+", text):
                return ast.copy_location(ast.Name(text, ast.Load()), node)
        return node


def key(node: ast.AST | None) -> str:
    """Return what a tree says, equal for equal ones."""
    return "" if node is None else ast.dump(node)


def header(node: ast.stmt) -> ast.stmt:
    """Return a statement without the blocks under it."""
    bare = copy.copy(node)
    for name in _BODIES:
        if isinstance(getattr(bare, name, None), list):
            setattr(bare, name, [])
    return bare


def blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """Yield the blocks under a statement, those of its clauses too."""
    for name in _BODIES:
        for child in (held,) if (held := getattr(node, name, None)) else ():
            if isinstance(child, list) and child and isinstance(child[0], ast.stmt):
                yield child
            elif isinstance(child, list):
                for clause in child:
                    yield from blocks(clause)


class _Fresh(ast.NodeTransformer):
    def __init__(self, names: Mapping[str, str]) -> None:
        self.names = names

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.Name(self.names.get(node.id, node.id), node.ctx)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if match.HOLE.fullmatch(node.attr):
            return ast.Name("_", node.ctx)  # such a name cannot be asked for (R2)
        return self.generic_visit(node)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> ast.AST:
        node.name = self.names.get(node.name or "", node.name)
        return self.generic_visit(node)


def renamed(node: ast.stmt, names: Mapping[str, str]) -> ast.stmt:
    """Return a statement with other names; `names` are what `holes` gave."""
    out: ast.stmt = _Fresh(names).visit(copy.deepcopy(node))
    return out


class _Short(ast.NodeTransformer):
    def visit_Constant(self, node: ast.Constant) -> ast.Constant:
        return GAP if isinstance(node.value, str) and len(node.value) > _LONG else node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.expr:
        return GAP


def short(node: ast.stmt) -> ast.stmt:
    """Return a statement without its long texts, which are for people."""
    out: ast.stmt = _Short().visit(copy.deepcopy(node))
    return out


def holes(function: ast.FunctionDef | ast.AsyncFunctionDef) -> dict[str, str]:
    """Return the local names of a def and the hole that stands for each."""
    found: dict[str, None] = {}
    kept = {arg.arg for arg in _arguments(function.args)}
    for node in _within(function):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.ExceptHandler(name=str(name)):
                found[name] = None
            case ast.Global(names=names) | ast.Nonlocal(names=names):
                kept.update(names)
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                kept.update(alias.asname or alias.name.split(".")[0] for alias in aliases)
    out: dict[str, str] = {}
    for name in found:
        plain = "_" + re.sub(r"[^a-z0-9_]+", "", name.lower()).strip("_0123456789") + "_"
        whole = plain if plain not in out.values() else f"{plain[:-1]}{len(out)}_"
        if name not in kept and match.HOLE.fullmatch(whole):
            out[name] = whole
    return out


def _arguments(args: ast.arguments) -> Iterator[ast.arg]:
    yield from (*args.posonlyargs, *args.args, *args.kwonlyargs)
    yield from (one for one in (args.vararg, args.kwarg) if one)


def _within(node: ast.AST) -> Iterator[ast.AST]:
    """Everything in a def, but for what is in defs and classes inside it."""
    for child in ast.iter_child_nodes(node):
        yield child
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield from _within(child)


def general(new: ast.stmt, old: ast.stmt) -> ast.stmt:
    """Return a statement with `_` and `...` for what its earlier form had already.

    What it is about stays: the target of an assignment or a loop.
    """
    out = copy.copy(new)
    match out, old:
        case (ast.Assign(), ast.Assign() | ast.AnnAssign()) if old.value:
            out.value = expression(out.value, old.value)
        case ast.AugAssign(), ast.AugAssign():
            out.value = expression(out.value, old.value)
        case ast.Expr(), ast.Expr():
            out.value = expression(out.value, old.value)
        case (ast.Return(), ast.Return()) if out.value and old.value:
            out.value = expression(out.value, old.value)
        case (ast.If() | ast.While(), ast.If() | ast.While()):
            out.test = expression(out.test, old.test)
        case (ast.For() | ast.AsyncFor(), ast.For() | ast.AsyncFor()):
            out.iter = expression(out.iter, old.iter)
    return out


def expression(new: ast.expr, old: ast.expr) -> ast.expr:
    """Return an expression with `_` and `...` for what its earlier form had already."""
    if key(new) == key(old):
        return ast.Name("_", ast.Load())
    match new, old:
        case (
            (ast.List(), ast.List(elts=elts))
            | (ast.Set(), ast.Set(elts=elts))
            | (ast.Tuple(), ast.Tuple(elts=elts))
        ):
            return _items(new, elts)
        case ast.Dict(), ast.Dict():
            had = {(key(k), key(v)) for k, v in zip(old.keys, old.values, strict=True)}
            pairs = list(zip(new.keys, new.values, strict=True))
            kept = [(k, v) for k, v in pairs if (key(k), key(v)) not in had]
            if kept and len(kept) < len(pairs):
                return ast.Dict([*(k for k, _ in kept), None], [*(v for _, v in kept), GAP])
            return new
        case (ast.Call(), ast.Call()) if key(new.func) == key(old.func):
            return _call(new, old)
        case (ast.BinOp(), ast.BinOp()) if key(new.op) == key(old.op):
            left, right = expression(new.left, old.left), expression(new.right, old.right)
            return ast.BinOp(left, new.op, right)
        case (ast.BoolOp(), ast.BoolOp()) if key(new.op) == key(old.op):
            if len(new.values) == len(old.values):
                pairs_ = zip(new.values, old.values, strict=True)
                return ast.BoolOp(new.op, [expression(a, b) for a, b in pairs_])
    had_all = {key(part) for part in ast.walk(old) if isinstance(part, ast.expr)}
    out = _Had(had_all).visit(copy.deepcopy(new))
    assert isinstance(out, ast.expr)
    return out


def _items(new: ast.expr, old: Sequence[ast.expr]) -> ast.expr:
    assert isinstance(new, ast.List | ast.Set | ast.Tuple)
    had = {key(item) for item in old}
    fresh = [key(item) not in had for item in new.elts]
    if not any(fresh) or all(fresh):
        return new
    out = copy.copy(new)
    if isinstance(new, ast.Tuple):
        out.elts = _gapped(new.elts, fresh)
    else:
        out.elts = [*(item for item, one in zip(new.elts, fresh, strict=True) if one), GAP]
    return out


def _call(new: ast.Call, old: ast.Call) -> ast.expr:
    args: list[ast.expr]
    if len(new.args) == len(old.args) and not any(isinstance(a, ast.Starred) for a in new.args):
        pairs = zip(new.args, old.args, strict=True)
        args = [expression(a, b) for a, b in pairs]
        fresh = [key(a) != key(b) for a, b in zip(new.args, old.args, strict=True)]
        args = _gapped(args, fresh)
    else:
        had = {key(arg) for arg in old.args}
        args = _gapped(new.args, [key(arg) not in had for arg in new.args])
    was = {word.arg: word.value for word in old.keywords}
    words = [word for word in new.keywords if key(word.value) != key(was.get(word.arg))]
    if len(words) < len(new.keywords) and not any(arg is GAP for arg in args):
        args = [*args, GAP]
    words = [
        ast.keyword(
            word.arg, expression(word.value, was[word.arg]) if word.arg in was else word.value
        )
        for word in words
    ]
    return ast.Call(new.func, args, words)


def _gapped(items: Sequence[ast.expr], fresh: Sequence[bool]) -> list[ast.expr]:
    """Return the fresh items, with one gap for each run of others."""
    out: list[ast.expr] = []
    for item, one in zip(items, fresh, strict=True):
        if one:
            out.append(item)
        elif not out or out[-1] is not GAP:
            out.append(GAP)
    return out


class _Had(ast.NodeTransformer):
    """`_` for each part that was there before, but for names, constants and what is called."""

    def __init__(self, had: set[str]) -> None:
        self.had = had

    def visit(self, node: ast.AST) -> ast.AST:
        """Replace the largest parts."""
        plain = isinstance(node, ast.Name | ast.Constant | ast.Starred)
        if isinstance(node, ast.expr) and not plain and key(node) in self.had:
            return ast.Name("_", ast.Load())
        if isinstance(node, ast.Call):
            parts: list[ast.AST] = [*node.args, *node.keywords]
            seen = [self.visit(part) for part in parts]
            node.args = [one for one in seen if isinstance(one, ast.expr)]
            node.keywords = [one for one in seen if isinstance(one, ast.keyword)]
            return node
        return self.generic_visit(node)
