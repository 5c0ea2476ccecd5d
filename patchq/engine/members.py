"""What a diff says of classes and defs: those that are new, and what their headers got.

`items` compares two texts scope by scope; statements are `statements`' part.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Sequence
from typing import TypeVar

from patchq.engine import statements, wording
from patchq.engine.implied import (
    DEFS,
    FEW,
    SAYS_NOTHING,
    Def,
    Item,
    Key,
    Scope,
    any_value,
    def_,
    plain,
    rows,
    scopes,
    silent,
    stub,
    targets,
)

Node = TypeVar("Node", bound=ast.AST)


def items(before: bytes | None, after: bytes) -> tuple[list[Item], list[Item]]:
    """Return what a sketch may ask of `after`, and what it may ask only if it must.

    The second is what is gone (`# absent`). Of a new file the names are enough.
    Raises: SyntaxError.
    """
    old = scopes(wording.parse(before or b""))
    new = scopes(wording.parse(after))
    found: list[Item] = []
    spare: list[Item] = []
    for at, scope in new.items():
        had = old.get(at)
        if had is not None:
            found += _head(had, scope)
            reader = statements.Reader(had, scope)
            found += reader.found()
            spare += [*reader.gone(), *_dropped(had, scope)]
        elif at[:-1] in old:
            found += _fresh(scope, before is None)
    spare += [_absent(one, new[at[:-1]].way) for at, one in old.items() if _left(at, new)]
    if before is None:
        named = [one for one in found if isinstance(one.forms[0][0][1], (*DEFS, ast.Assign))]
        found = named or found
    return found, spare


def _left(at: Key, new: dict[Key, Scope]) -> bool:
    return bool(at) and at not in new and at[:-1] in new


def _absent(scope: Scope, way: tuple[ast.stmt, ...]) -> Item:
    node = scope.node
    assert isinstance(node, DEFS)
    empty: ast.stmt = ast.ClassDef(node.name, [], [], [SAYS_NOTHING], [])
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        empty = _bare(node)
    return Item(way, node.lineno, frozenset(), rows(node, whole=True), ((("absent", empty),),))


def _head(had: Scope, scope: Scope) -> Iterator[Item]:
    """What a class or def that was there has got in its header."""
    old, new = had.node, scope.node
    form: ast.stmt | None = None
    if isinstance(new, ast.ClassDef) and isinstance(old, ast.ClassDef):
        form = ast.ClassDef(
            new.name,
            _added(new.bases, old.bases),
            _added(new.keywords, old.keywords),
            [],
            _added(new.decorator_list, old.decorator_list),
        )
        empty = not (form.bases or form.keywords or form.decorator_list)
    elif isinstance(new, Def) and isinstance(old, Def):
        form = def_(new, [], [])
        form.args = _arguments(new.args, old.args)
        form.decorator_list = _added(new.decorator_list, old.decorator_list)
        if new.returns and wording.key(new.returns) != wording.key(old.returns):
            form.returns = new.returns
        empty = wording.key(form) == wording.key(def_(new, [], []))
    if form is not None and not empty:
        at = rows(scope.way[-1])
        yield Item(scope.way, min(at), at, frozenset(), ((("", form),),), head=True)


def _dropped(had: Scope, scope: Scope) -> Iterator[Item]:
    """The parameters and decorators that a def which was there has no more."""
    old, new = had.node, scope.node
    if not (isinstance(old, Def) and isinstance(new, Def)):
        return
    kept = {arg.arg for arg in _names(new.args)}
    for arg in _names(old.args):
        if arg.arg not in kept:
            stars = [one if one is arg else None for one in (old.args.vararg, old.args.kwarg)]
            form = _bare(new)
            form.args.args += [] if any(stars) else [ast.arg(arg.arg)]
            form.args.vararg, form.args.kwarg = (one and ast.arg(one.arg) for one in stars)
            yield _gone(scope, form, arg)
    for one in _added(old.decorator_list, new.decorator_list):
        form = _bare(new)
        form.decorator_list = [one]
        yield _gone(scope, form, one)


def _bare(node: Def) -> Def:
    """Return a def of the same name that says nothing else."""
    bare = stub(node)
    assert isinstance(bare, Def)
    return def_(node, bare.args.args, [SAYS_NOTHING])


def _names(args: ast.arguments) -> Iterator[ast.arg]:
    yield from (arg for arg, _ in _pairs(args))
    yield from (one for one in (args.vararg, args.kwarg) if one)


def _gone(scope: Scope, form: ast.stmt, where: ast.arg | ast.expr) -> Item:
    """Ask that a def is not this way any more; `where` is the part that has gone."""
    lines = frozenset(range(where.lineno, (where.end_lineno or where.lineno) + 1))
    line = scope.way[-1].lineno
    return Item(scope.way[:-1], line, frozenset(), lines, ((("absent", form),),))


def _added(new: Sequence[Node], old: Sequence[Node]) -> list[Node]:
    had = {wording.key(one) for one in old}
    return [one for one in new if wording.key(one) not in had]


def _arguments(new: ast.arguments, old: ast.arguments | None) -> ast.arguments:
    """Return the parameters that are new or are not as before; all names for `old` None."""
    had = {} if old is None else {a.arg: (wording.key(a), wording.key(v)) for a, v in _pairs(old)}
    out = ast.arguments([], [], None, [], [], None, [])
    for arg, default in _pairs(new):
        value = wording.key(default)
        was = had.get(arg.arg)
        if was is not None and was == (wording.key(arg), value):
            continue
        annotated = was is not None and was[0] != wording.key(arg)
        out.kwonlyargs.append(ast.arg(arg.arg, arg.annotation if annotated else None))
        fresh = old is not None and value != "" and (was is None or was[1] != value)
        out.kw_defaults.append((wording.GAP if was is None else default) if fresh else None)
    bare = [arg for arg, value in zip(out.kwonlyargs, out.kw_defaults, strict=True) if not value]
    more = [arg for arg, value in zip(out.kwonlyargs, out.kw_defaults, strict=True) if value]
    # A sketch finds a parameter by its name, wherever it stands.
    values = [value for value in out.kw_defaults if value]
    stars = [_star(getattr(new, name), getattr(old, name, None)) for name in ("vararg", "kwarg")]
    return ast.arguments([], [*bare, *more], stars[0], [], [], stars[1], values)


def _star(new: ast.arg | None, old: ast.arg | None) -> ast.arg | None:
    """Return `*args` or `**kwargs` that is new, or has another name or annotation."""
    if new is None or wording.key(new) == wording.key(old):
        return None
    return ast.arg(new.arg, new.annotation if old and old.arg == new.arg else None)


def _pairs(args: ast.arguments) -> Iterator[tuple[ast.arg, ast.expr | None]]:
    plain = [*args.posonlyargs, *args.args]
    values = [None] * (len(plain) - len(args.defaults)) + list(args.defaults)
    yield from zip(plain, values, strict=True)
    yield from zip(args.kwonlyargs, args.kw_defaults, strict=True)


def _fresh(scope: Scope, file_too: bool) -> Iterator[Item]:
    """A class or def that was not there."""
    node, way = scope.way[-1], scope.way[:-1]
    at = rows(node, whole=True)
    if isinstance(node, ast.ClassDef):
        members = [] if file_too else [_member(one) for one in node.body]
        body = [one for one in members if one] or [SAYS_NOTHING]
        whole: ast.stmt = ast.ClassDef(node.name, node.bases, node.keywords, body, [])
        forms: list[ast.stmt] = [whole, ast.ClassDef(node.name, [], [], [SAYS_NOTHING], [])]
    else:
        assert isinstance(node, Def)
        named = def_(node, [], [SAYS_NOTHING])
        named.args = _arguments(node.args, None)
        named.decorator_list = node.decorator_list
        forms = [named]
        said = [one for one in node.body if not silent(one)]
        inside = [one for top in said for one in ast.walk(top) if isinstance(one, ast.stmt)]
        nested = any(isinstance(one, DEFS) for one in inside)
        if said and len(inside) <= FEW and not nested and not file_too:
            full = copy.copy(named)
            full.body = [wording.renamed(plain(one), wording.holes(node)) for one in said]
            forms.insert(0, full)
    yield Item(way, min(at), at, frozenset(), tuple((("", one),) for one in forms))


def _member(node: ast.stmt) -> ast.stmt | None:
    if isinstance(node, Def):
        out = def_(node, [], [SAYS_NOTHING])
        out.args = _arguments(node.args, None)
        return out
    names = list(targets(node))
    return any_value(names[0]) if names else None
