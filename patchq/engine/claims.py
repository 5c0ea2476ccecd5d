"""The claims of one section of a sketch, judged on one file: R11, R12, R14.

The claims and their order come from the sketch and the release alone: on every
text there are the same ones, so that two texts can be compared claim by claim.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import libcst as cst
from packaging.version import Version

from patchq.engine import match, names, nearest, scopes, sites
from patchq.engine.budget import Budget, TooLoose
from patchq.engine.scopes import Scope
from patchq.engine.search import TRIALS, Search
from patchq.engine.sections import Marks, Section
from patchq.engine.trees import Fault, Tree
from patchq.engine.verdict import LOOSE, Claim

# How many questions of one section may be searched to the end of the budget (R13).
_LONG = 5


class Judge:
    """Judges a section on one text. `explain`: find the nearest miss of what fails.

    `alone`: not the claims, but each leaf statement of a def by itself (R16).
    """

    def __init__(
        self,
        section: Section,
        tree: Tree | Fault | None,
        release: Version,
        *,
        explain: bool = True,
        limit: int = TRIALS,
    ) -> None:
        self.section, self.release = section, release
        self.tree = tree if isinstance(tree, Tree) else None
        self.explain, self.limit = explain, limit
        self._left = _LONG * limit
        trouble = "there is no such file"
        if isinstance(tree, Fault):
            trouble = f"it is {tree.words}" if tree.deep else f"it does not parse, {tree}"
        self.top = Scope("", self.tree.module if self.tree else None, trouble)

    def claims(self) -> Iterator[Claim]:
        """Yield every claim of the section, in the order of the sketch."""
        yield from self._scope(self.section.module, self.top, Marks())

    def leaves(self) -> Iterator[Claim]:
        """Yield each leaf statement of a def, judged alone under its own headers."""
        yield from self._leaves(self.section.module, self.top, Marks())

    def givens(self) -> Iterator[tuple[int, str]]:
        """Yield line and qualified name of each def that has only given lines."""
        yield from self._givens(self.section.module, "")

    def _givens(self, body: cst.CSTNode, where: str) -> Iterator[tuple[int, str]]:
        for node, marks in self.section.statements(body, self.release):
            if not isinstance(node, cst.ClassDef | cst.FunctionDef) or marks.given:
                continue
            name = f"{where}.{node.name.value}" if where else node.name.value
            if isinstance(node, cst.ClassDef):
                yield from self._givens(node.body, name)
                continue
            said = [given for _, given, _ in leaves(self.section, node, self.release)]
            if said and all(said):
                yield self.section.lines.get(id(node), 0), name

    def _scope(self, body: cst.CSTNode, scope: Scope, over: Marks) -> Iterator[Claim]:
        for node, own in self.section.statements(body, self.release):
            marks = replace(own, given=own.given or over.given)
            if isinstance(node, cst.Import | cst.ImportFrom):
                yield from self._imports(node, scope, marks)
            elif isinstance(node, cst.ClassDef):
                yield from self._class(node, scope, marks)
            else:
                yield self._statement(node, scope, marks)

    def _claim(
        self, node: cst.CSTNode, scope: Scope, code: str, held: bool, marks: Marks
    ) -> Claim:
        line = self.section.lines.get(id(node), 0)
        return Claim(self.section.path, scope.where, code, line, held, marks.given)

    def _missed(self, claim: Claim, text: str, at: int | None) -> Claim:
        if claim.held or not (self.explain or text == LOOSE):
            return claim
        place = f"{claim.path}, line {at}" if at else claim.path
        inside = f", {claim.where}" if claim.where else ""
        return replace(claim, nearest=f"{place}{inside}: {text}", at=at)

    def _imports(
        self, node: cst.Import | cst.ImportFrom, scope: Scope, marks: Marks
    ) -> Iterator[Claim]:
        there = self._imported(scope)
        for wanted in names.imported(node, self.section.path):
            held = scope.body is not None and (wanted in there) != marks.absent
            claim = self._claim(node, scope, names.spoken(wanted), held, marks)
            text, at = (scope.trouble, None) if scope.body is None else ("", None)
            if not text and not held and self.explain:
                text, at = nearest.imports(wanted, there, self.tree)
            yield self._missed(claim, text, at)

    def _imported(self, scope: Scope) -> dict[names.Imported, cst.CSTNode]:
        return {
            name: site.node
            for site in self._places(scope)
            for name in names.imported(site.node, self.section.path)
        }

    def _places(self, scope: Scope) -> tuple[sites.Site, ...]:
        if self.tree is None or scope.body is None:
            return ()
        return sites.sites(self.tree, scope.body)

    def _find(self, node: cst.ClassDef, scope: Scope) -> Scope:
        """R11: the class of that name in the scope; the last definition counts."""
        name = scope.inner(node.name.value)
        if scope.node is None:
            return Scope(name, None, scope.trouble)
        found = [
            site.node
            for site in self._places(scope)
            if isinstance(site.node, cst.ClassDef) and site.node.name.value == node.name.value
        ]
        if found:
            return Scope(name, found[-1])
        return Scope(
            name, None, nearest.classes(node.name.value, scope.where, self._places(scope))
        )

    def _class(self, node: cst.ClassDef, scope: Scope, marks: Marks) -> Iterator[Claim]:
        found = self._find(node, scope)
        line = self._line(found.node)
        if marks.absent:
            held = scope.node is not None and found.node is None
            claim = self._claim(node, scope, f"class {node.name.value}", held, marks)
            trouble = "it is there" if found.node is not None else scope.trouble
            yield self._missed(claim, trouble, line)
            return
        asked = False
        for code, pattern, targets in _heads(node, found.node):
            asked = True
            held = _one_fits(pattern, targets, Budget(self.limit))
            claim = self._claim(node, found, code, held, marks)
            has = ", ".join(map(nearest.code, targets)) or "none"
            text = found.trouble if found.node is None else f"it has {has}"
            yield self._missed(claim, text, line)
        for claim in self._scope(node.body, found, marks):
            asked = True
            yield claim
        if not asked:
            held = found.node is not None
            claim = self._claim(node, scope, f"class {node.name.value}", held, marks)
            yield self._missed(claim, found.trouble, None)

    def _statement(self, node: cst.CSTNode, scope: Scope, marks: Marks) -> Claim:
        inside = _inside(node, scope)
        code = nearest.code(node)
        if self.tree is None or scope.body is None:
            return self._missed(self._claim(node, inside, code, False, marks), scope.trouble, None)
        search = self._search(None)
        places = scopes.candidates(node, self._places(scope))
        try:
            found = next(search.ask(node, places), None)
        except TooLoose:
            return self._missed(self._claim(node, inside, code, False, marks), LOOSE, None)
        finally:
            self._left -= search.budget.spent
        held = (found is not None) != marks.absent
        claim = self._claim(node, inside, code, held, marks)
        if held or not self.explain:
            return claim
        if found is not None:
            return self._missed(claim, "it is there", self._line(found[0].node))
        miss = nearest.statement(search, node, places, self._line(scope.node), self._places(scope))
        return self._missed(claim, miss.text, miss.line)

    def _search(self, keep: frozenset[int] | None) -> Search:
        assert self.tree is not None
        explain = self.explain and keep is None
        return Search(
            self.tree,
            self.section,
            self.release,
            keep=keep,
            explain=explain,
            limit=max(min(self.limit, self._left), 0),
        )

    def _line(self, node: cst.CSTNode | None) -> int | None:
        if node is None or self.tree is None or not self.explain:
            return None
        return self.tree.lines.get(id(node))

    def _leaves(self, body: cst.CSTNode, scope: Scope, over: Marks) -> Iterator[Claim]:
        for node, own in self.section.statements(body, self.release):
            marks = replace(own, given=own.given or over.given)
            if isinstance(node, cst.ClassDef) and not own.absent:
                yield from self._leaves(node.body, self._find(node, scope), marks)
            elif isinstance(node, cst.BaseCompoundStatement) and not own.absent:
                for chain, given, absent in leaves(self.section, node, self.release):
                    where = _inside(node, scope).where
                    held = self._alone(node, chain, scope)
                    leaf = chain[-1]
                    line = self.section.lines.get(id(leaf), 0)
                    yield Claim(
                        self.section.path,
                        where,
                        ("absent: " if absent else "") + nearest.code(leaf),
                        line,
                        held,
                        given or marks.given,
                    )

    def _alone(self, node: cst.CSTNode, chain: tuple[cst.CSTNode, ...], scope: Scope) -> bool:
        if self.tree is None or scope.body is None:
            return False
        # What the leaf holds is a part of it: empty clauses, and all of an absent statement.
        keep = frozenset(map(id, (*chain, *_under(chain[-1]))))
        search = self._search(keep)
        try:
            places = scopes.candidates(node, self._places(scope))
            return any(True for _ in search.ask(node, places))
        except TooLoose:
            return False
        finally:
            self._left -= search.budget.spent


def _under(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    for child in node.children:
        yield child
        yield from _under(child)


def _inside(node: cst.CSTNode, scope: Scope) -> Scope:
    """The scope as a message names it: a def's claims are about the def."""
    if isinstance(node, cst.FunctionDef):
        return Scope(scope.inner(node.name.value), scope.node, scope.trouble)
    return scope


def leaves(
    section: Section, node: cst.CSTNode, release: Version
) -> Iterator[tuple[tuple[cst.CSTNode, ...], bool, bool]]:
    """Yield (the way down, given, absent) of each statement without statements under it."""
    for part in sites.parts(node):
        if not isinstance(part, cst.BaseSuite):
            for chain, given, absent in leaves(section, part, release):
                yield (node, *chain), given, absent
            continue
        for inner, marks in section.statements(part, release):
            below = []
            if isinstance(inner, cst.BaseCompoundStatement) and not marks.absent:
                below = list(leaves(section, inner, release))
            for chain, given, absent in below or [((inner,), False, marks.absent)]:
                yield (node, *chain), given or marks.given, absent


def _one_fits(pattern: cst.CSTNode, targets: list[cst.CSTNode], budget: Budget) -> bool:
    try:
        return any(match.fits(pattern, target, budget) for target in targets)
    except TooLoose:
        return False


def _heads(
    p: cst.ClassDef, t: cst.CSTNode | None
) -> Iterator[tuple[str, cst.CSTNode, list[cst.CSTNode]]]:
    """What the sketch asks for beside the name, one by one, and what there is of the kind."""
    found = t if isinstance(t, cst.ClassDef) else None
    if p.type_parameters:
        typed = found.type_parameters if found else None
        code = f"class {p.name.value}{nearest.code(p.type_parameters)}"
        yield code, p.type_parameters, [typed] if typed else []
    for arg in p.bases:
        if not match.is_gap(arg):
            there: list[cst.CSTNode] = list(found.bases) if found else []
            yield f"class {p.name.value}({nearest.code(arg)})", arg, there
    for arg in p.keywords:
        there = list(found.keywords) if found else []
        yield f"class {p.name.value}({nearest.code(arg)})", arg, there
    for deco in p.decorators:
        there = [one.decorator for one in found.decorators] if found else []
        yield f"@{nearest.code(deco.decorator)} class {p.name.value}", deco.decorator, there
