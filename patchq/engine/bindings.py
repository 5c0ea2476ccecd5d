"""Reads a tree into its namespaces: all binding forms of Python 3.8 to 3.14.

Without recursion, so that depth is no matter. Order is not looked at: a name counts
as bound in a namespace wherever in it that is, as Python's own compiler sees it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from patchq.engine import guards, typehints
from patchq.engine.spaces import Binding, Kind, Space, Use


@dataclass(slots=True)
class Spaces:
    """All namespaces of a text, the module's first."""

    module: Space
    all: list[Space] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a node stands; the fields of `Use` say what the others mean."""

    space: Space
    typed: bool = False
    guarded: bool = False
    caught: frozenset[str] = frozenset()

    def inside(self, space: Space) -> _Place:
        return _Place(space, self.typed, self.guarded)


def read(tree: ast.Module) -> Spaces:
    """Return the namespaces of a tree."""
    module = Space(Kind.MODULE, None, "")
    reader = _Reader(Spaces(module, [module]), typehints.postponed(tree))
    reader.run(tree, _Place(module))
    for space in reader.found.all:
        _move_globals(space, module)
    return reader.found


def _move_globals(space: Space, module: Space) -> None:
    for key in space.globals:
        how = space.bound.pop(key, Binding(0)) & ~Binding.WEAK
        # A name that is declared global may be put there from outside, too.
        module.bound[key] = module.bound.get(key, Binding(0)) | how | Binding.PLAIN
    for key in space.nonlocals:
        space.bound.pop(key, None)


class _Reader:
    def __init__(self, found: Spaces, postponed: bool) -> None:
        self.found = found
        self.postponed = postponed
        self.todo: list[tuple[ast.AST, _Place]] = []
        self.forms: dict[type[ast.AST], Callable[..., None]] = {
            ast.Name: self._name,
            ast.FunctionDef: self._function,
            ast.AsyncFunctionDef: self._function,
            ast.Lambda: self._lambda,
            ast.ClassDef: self._class,
            ast.Import: self._import,
            ast.ImportFrom: self._import,
            ast.Global: self._declared,
            ast.Nonlocal: self._declared,
            ast.NamedExpr: self._walrus,
            ast.AugAssign: self._augmented,
            ast.AnnAssign: self._annotated,
            ast.If: self._if,
            ast.Try: self._try,
            ast.TryStar: self._try,
            ast.With: self._with,
            ast.AsyncWith: self._with,
            ast.ExceptHandler: self._handler,
            ast.MatchAs: self._capture,
            ast.MatchStar: self._capture,
            ast.MatchMapping: self._capture,
            **dict.fromkeys(
                (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp), self._comprehension
            ),
        }

    def run(self, tree: ast.Module, place: _Place) -> None:
        self.todo.append((tree, place))
        while self.todo:
            node, place = self.todo.pop()
            form = self.forms.get(type(node))
            if form is not None:
                form(node, place)
            elif type(node).__name__ == "TypeAlias":
                self._alias(node, place)
            else:
                self._children(node, place)

    def _children(self, node: ast.AST, place: _Place) -> None:
        self.todo.extend((child, place) for child in ast.iter_child_nodes(node))

    def _push(self, nodes: Iterable[ast.AST | None], place: _Place) -> None:
        self.todo.extend((node, place) for node in nodes if node is not None)

    def _space(self, kind: Kind, place: _Place, name: str = "") -> _Place:
        outer = place.space
        where = f"{outer.where}.{name}" if outer.where and name else name or outer.where
        private = name if kind is Kind.CLASS else outer.private
        space = Space(kind, outer, where, private)
        self.found.all.append(space)
        return place.inside(space)

    def _bind(self, name: str, place: _Place, how: Binding = Binding.PLAIN) -> None:
        place.space.bind(name, Binding.TYPED if place.typed and how == Binding.PLAIN else how)

    def _use(self, name: str, line: int, place: _Place) -> None:
        use = Use(name, line, place.typed, place.guarded, place.caught)
        place.space.uses.append(use)

    def _name(self, node: ast.Name, place: _Place) -> None:
        if isinstance(node.ctx, ast.Store):
            self._bind(node.id, place)
            return
        if isinstance(node.ctx, ast.Del):
            self._bind(node.id, place, Binding.WEAK)
        self._use(node.id, node.lineno, place)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef, place: _Place) -> None:
        self._bind(node.name, place)
        self._push(node.decorator_list, place)
        outer = self._types(node, place)
        inner = self._space(Kind.FUNCTION, outer, node.name)
        self._arguments(node.args, place, outer, inner)
        self._annotation(node.returns, outer)
        self._push(node.body, inner)

    def _lambda(self, node: ast.Lambda, place: _Place) -> None:
        inner = self._space(Kind.FUNCTION, place)
        self._arguments(node.args, place, place, inner)
        self._push([node.body], inner)

    def _arguments(self, node: ast.arguments, place: _Place, outer: _Place, inner: _Place) -> None:
        """Defaults are looked up at `place`, annotations at `outer`; the names are `inner`'s."""
        self._push([*node.defaults, *node.kw_defaults], place)
        for one in (*node.posonlyargs, *node.args, *node.kwonlyargs, node.vararg, node.kwarg):
            if one is not None:
                inner.space.bind(one.arg, Binding.PLAIN)
                self._annotation(one.annotation, outer)

    def _class(self, node: ast.ClassDef, place: _Place) -> None:
        self._bind(node.name, place)
        self._push(node.decorator_list, place)
        outer = self._types(node, place)
        self._push([*node.bases, *node.keywords], outer)
        self._push(node.body, self._space(Kind.CLASS, outer, node.name))

    def _types(self, node: ast.AST, place: _Place) -> _Place:
        """The namespace of type parameters, where a statement has any."""
        params = getattr(node, "type_params", None)
        if not params:
            return place
        inner = self._space(Kind.TYPES, place)
        for one in params:
            inner.space.bind(one.name, Binding.PLAIN)
            # Evaluated when somebody asks, if ever.
            late = (getattr(one, "bound", None), getattr(one, "default_value", None))
            self._push(late, replace(inner, typed=True))
        return inner

    def _alias(self, node: ast.AST, place: _Place) -> None:
        name, value = node.name, node.value  # type: ignore[attr-defined]  # Python's from 3.12 on
        self._bind(name.id, place)
        inner = self._types(node, place)
        lazy = inner if inner is not place else self._space(Kind.TYPES, place)
        self._push([value], replace(lazy, typed=True))

    def _annotation(self, node: ast.expr | None, place: _Place, *, never: bool = False) -> None:
        if node is None:
            return
        typed = replace(place, typed=True)
        here = typed if never or self.postponed else place
        evaluated, quoted = typehints.parts(node)
        self._push(evaluated, here)
        self._push(quoted, typed)

    def _annotated(self, node: ast.AnnAssign, place: _Place) -> None:
        inside = place.space.kind is Kind.FUNCTION
        self._push([node.target, node.value], place)
        self._annotation(node.annotation, place, never=inside)

    def _augmented(self, node: ast.AugAssign, place: _Place) -> None:
        self._push([node.value], place)
        if isinstance(node.target, ast.Name):
            self._bind(node.target.id, place, Binding.WEAK)
            self._use(node.target.id, node.lineno, place)
        else:
            self._push([node.target], place)

    def _walrus(self, node: ast.NamedExpr, place: _Place) -> None:
        self._push([node.value], place)
        space = next(s for s in place.space.outwards() if s.kind is not Kind.COMPREHENSION)
        self._bind(node.target.id, replace(place, space=space))

    def _comprehension(
        self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp, place: _Place
    ) -> None:
        # Python evaluates the first iterable outside.
        self._push([node.generators[0].iter], place)
        inner = self._space(Kind.COMPREHENSION, place)
        for number, one in enumerate(node.generators):
            self._push([one.target, *one.ifs, *([one.iter] if number else [])], inner)
        if isinstance(node, ast.DictComp):
            self._push([node.key, node.value], inner)
        else:
            self._push([node.elt], inner)

    def _import(self, node: ast.Import | ast.ImportFrom, place: _Place) -> None:
        for alias in node.names:
            bound = alias.asname or alias.name
            if alias.name != "*":
                whole = isinstance(node, ast.ImportFrom) or alias.asname
                self._bind(bound if whole else bound.partition(".")[0], place)

    def _declared(self, node: ast.Global | ast.Nonlocal, place: _Place) -> None:
        space = place.space
        names = space.globals if isinstance(node, ast.Global) else space.nonlocals
        names.update(space.key(name) for name in node.names)

    def _if(self, node: ast.If, place: _Place) -> None:
        typing = guards.type_checking(node.test)
        self._push([node.test], place)
        self._push(node.body, replace(place, typed=True) if typing else place)
        self._push(node.orelse, replace(place, typed=True) if typing is False else place)

    def _try(self, node: ast.Try | ast.TryStar, place: _Place) -> None:
        expected = guards.catches(node.handlers, guards.FAILED_NAME)
        self._push(node.body, replace(place, guarded=True) if expected else place)
        self._push([*node.handlers, *node.orelse, *node.finalbody], place)

    def _with(self, node: ast.With | ast.AsyncWith, place: _Place) -> None:
        self._push(node.items, place)
        expected = guards.suppresses(node, guards.FAILED_NAME)
        self._push(node.body, replace(place, guarded=True) if expected else place)

    def _handler(self, node: ast.ExceptHandler, place: _Place) -> None:
        self._push([node.type], place)
        if node.name is not None:
            self._bind(node.name, place, Binding.CAUGHT)
            place = replace(place, caught=place.caught | {node.name})
        self._push(node.body, place)

    def _capture(self, node: ast.AST, place: _Place) -> None:
        name = getattr(node, "name", None) or getattr(node, "rest", None)
        if name is not None:
            self._bind(name, place)
        self._children(node, place)
