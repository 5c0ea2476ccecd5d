"""One statement of a sketch against one statement of a file: R8 to R12."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import libcst as cst

from patchq.engine import imprints, match, names, sites, trees
from patchq.engine.budget import Budget
from patchq.engine.match import Bindings
from patchq.engine.sites import Site


@dataclass(frozen=True, slots=True, eq=False)
class Line:
    """One statement of a sketch. `over`: holes that nothing after it uses."""

    node: cst.CSTNode
    given: bool
    absent: bool
    over: frozenset[str]


@dataclass(frozen=True, slots=True)
class Reach:
    """Where the next line may begin: a statement at `after`, an expression at `look` (R9)."""

    after: int = 0
    look: int = 0

    def covers(self, other: Reach) -> bool:
        """Return True if every place that `other` may use is open here too."""
        return self.after <= other.after and self.look <= other.look


class Blocks(Protocol):
    """Who answers for the blocks under a statement."""

    def lines(self, body: cst.CSTNode) -> tuple[Line, ...]:
        """Return what a block of the sketch says."""

    def places(self, target: cst.CSTNode) -> tuple[Site, ...]:
        """Return where in a block of the file a line may fit."""

    def block(self, body: cst.CSTNode, target: cst.CSTNode, env: Bindings) -> Iterator[Bindings]:
        """Yield the bindings under which a block holds in another."""

    def says(self, clause: cst.CSTNode) -> bool:
        """Return False for a clause that asks nothing."""


class Fitter:
    """Fits single statements; the file's `path` resolves relative imports."""

    def __init__(self, blocks: Blocks, budget: Budget, path: str) -> None:
        self.blocks, self.budget, self.path = blocks, budget, path

    def fit(self, p: cst.CSTNode, site: Site, env: Bindings) -> Iterator[tuple[Bindings, Reach]]:
        """Yield each way in which one statement fits one site, and what it leaves open."""
        t = site.node
        if isinstance(p, cst.Expr):
            self.budget.spend()
            for found in site.own:
                for bound in match.match(p.value, found, env, self.budget):
                    yield bound, Reach(site.low, site.low)
            return
        if type(p) is not type(t) and not isinstance(p, cst.Assign):
            return
        self.budget.spend()
        simple = isinstance(p, cst.BaseSmallStatement)
        further = Reach(site.high, site.low if simple else site.high)
        for bound in self._statement(p, t, env):
            yield bound, further

    def may_fit(self, p: cst.CSTNode, site: Site) -> bool:
        """Return False where a statement cannot fit, whatever its holes are bound to.

        Of compound statements only the header is looked at.
        """
        if isinstance(p, cst.BaseSmallStatement):
            return any(True for _ in self.fit(p, site, {}))
        self.budget.spend()
        if isinstance(p, sites.DEFS):
            return type(p) is type(site.node)
        return any(True for _ in self.heading(p, site.node, {}))

    def _statement(self, p: cst.CSTNode, t: cst.CSTNode, env: Bindings) -> Iterator[Bindings]:
        match p:
            case cst.Assign():
                yield from self._assign(p, t, env)
            case cst.AnnAssign():
                assert isinstance(t, cst.AnnAssign)
                todo: list[tuple[object, object]] = [(p.target, t.target)]
                todo.append((p.annotation.annotation, t.annotation.annotation))
                todo += [(p.value, t.value)] if p.value is not None else []
                yield from match.chain(todo, env, self.budget)
            case cst.Import() | cst.ImportFrom():
                wanted = names.imported(p, self.path)
                if set(wanted) <= set(names.imported(t, self.path)):
                    yield env
            case cst.FunctionDef():
                assert isinstance(t, cst.FunctionDef)
                yield from self.function(p, t, env)
            case cst.ClassDef():
                assert isinstance(t, cst.ClassDef)
                yield from self._class(p, t, env)
            case cst.BaseCompoundStatement():
                yield from self._compound(p, t, env)
            case _:
                yield from match.match(p, t, env, self.budget)

    def _assign(self, p: cst.Assign, t: cst.CSTNode, env: Bindings) -> Iterator[Bindings]:
        """R10: `a = v` fits `a: T = v` and one target of a chain."""
        if isinstance(t, cst.AnnAssign) and t.value is not None and len(p.targets) == 1:
            todo = [(p.targets[0].target, t.target), (p.value, t.value)]
            yield from match.chain(todo, env, self.budget)
        elif isinstance(t, cst.Assign):
            for bound in match.subset(p.targets, t.targets, env, self.budget):
                yield from match.match(p.value, t.value, bound, self.budget)

    def function(
        self, p: cst.FunctionDef, t: cst.FunctionDef, env: Bindings
    ) -> Iterator[Bindings]:
        """Yield the bindings under which a def has at least what the sketch's def has."""
        for bound in self.header(p, t, env):
            yield from self.blocks.block(p.body, t.body, bound)

    def header(self, p: cst.FunctionDef, t: cst.FunctionDef, env: Bindings) -> Iterator[Bindings]:
        """R11: the name, and at least these parameters, annotations, decorators."""
        if p.name.value != t.name.value or bool(p.asynchronous) != bool(t.asynchronous):
            return
        wanted = [deco.decorator for deco in p.decorators]
        there = [deco.decorator for deco in t.decorators]
        typed = (
            b for e in self._typed(p, t, env) for b in match.subset(wanted, there, e, self.budget)
        )
        for bound in typed:
            for last in self._parameters(names.parameters(p), names.parameters(t), bound):
                if p.returns is None:
                    yield last
                elif t.returns is not None:
                    pair = p.returns.annotation, t.returns.annotation
                    yield from match.match(*pair, last, self.budget)

    def _typed(
        self, p: cst.FunctionDef | cst.ClassDef, t: cst.FunctionDef | cst.ClassDef, env: Bindings
    ) -> Iterator[Bindings]:
        """Type parameters (PEP 695), where given, are the same."""
        if p.type_parameters is None:
            yield env
        elif t.type_parameters is not None:
            yield from match.match(p.type_parameters, t.type_parameters, env, self.budget)

    def _parameters(
        self, ps: Sequence[cst.Param], ts: Sequence[cst.Param], env: Bindings
    ) -> Iterator[Bindings]:
        if not ps:
            yield env
            return
        for place, t in enumerate(ts):
            self.budget.spend()
            if names.star(ps[0]) != names.star(t):
                continue
            todo: list[tuple[object, object]] = [(ps[0].name, t.name)]
            if ps[0].annotation:
                todo.append(
                    (ps[0].annotation.annotation, t.annotation and t.annotation.annotation)
                )
            if ps[0].default:
                todo.append((ps[0].default, t.default))
            for bound in match.chain(todo, env, self.budget):
                yield from self._parameters(ps[1:], [*ts[:place], *ts[place + 1 :]], bound)

    def _class(self, p: cst.ClassDef, t: cst.ClassDef, env: Bindings) -> Iterator[Bindings]:
        """A class within a def: at least these bases, keywords, decorators, members."""
        if p.name.value != t.name.value:
            return
        todo = [
            ([arg for arg in p.bases if not match.is_gap(arg)], t.bases),
            (p.keywords, t.keywords),
            ([deco.decorator for deco in p.decorators], [d.decorator for d in t.decorators]),
        ]
        found = list(self._typed(p, t, env))
        for ps, ts in todo:
            found = [b for e in found for b in match.subset(ps, ts, e, self.budget)]
        places = self.blocks.places(t.body)
        for line in self.blocks.lines(p.body):
            fitting = [
                [b for site in places for b, _ in self.fit(line.node, site, e)] for e in found
            ]
            if line.absent:
                found = [e for e, ways in zip(found, fitting, strict=True) if not ways]
            else:
                found = [b for ways in fitting for b in ways]
        yield from found

    def _compound(self, p: cst.CSTNode, t: cst.CSTNode, env: Bindings) -> Iterator[Bindings]:
        """R8: the header equal, the body within the body, clauses only where given."""
        for bound in self.heading(p, t, env):
            yield from self._clauses(list(sites.parts(p)), t, bound)

    def heading(self, p: cst.CSTNode, t: cst.CSTNode, env: Bindings) -> Iterator[Bindings]:
        """Yield the bindings under which the header of one compound fits another's."""
        if type(p) is not type(t):
            return
        todo = [
            (getattr(p, name), getattr(t, name))
            for name in imprints.fields(type(p))
            if name not in trees.BLOCKS
        ]
        yield from match.chain(todo, env, self.budget)

    def _clauses(
        self, ps: Sequence[cst.CSTNode], t: cst.CSTNode, env: Bindings
    ) -> Iterator[Bindings]:
        """Each block or clause of the sketch fits one of the same statement, in order."""
        if not ps:
            yield env
            return
        first, rest = ps[0], ps[1:]
        if isinstance(first, cst.BaseSuite):
            body = getattr(t, "body", None)
            assert isinstance(body, cst.BaseSuite)
            for bound in self.blocks.block(first, body, env):
                yield from self._clauses(rest, t, bound)
            return
        if not self.blocks.says(first):
            yield from self._clauses(rest, t, env)
            return
        for clause in _clauses_of(t):
            if type(clause) is not type(first):
                continue
            for bound in self.heading(first, clause, env):
                for whole in self._clauses(list(sites.parts(first)), clause, bound):
                    yield from self._clauses(rest, t, whole)


def _clauses_of(t: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """The clauses of one statement; an `elif` further down the chain is one too.

    The `else` at the end of the chain is the last `elif`'s, and nobody else's.
    """
    for part in sites.parts(t):
        if not isinstance(part, cst.BaseSuite):
            yield part
            if isinstance(t, cst.If) and isinstance(part, cst.If):
                yield from (one for one in _clauses_of(part) if isinstance(one, cst.If))
