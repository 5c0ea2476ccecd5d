"""What a diff says of the statements of one scope: new, changed, gone."""

from __future__ import annotations

import ast
import copy
import difflib
from collections.abc import Iterator, Sequence

from patchq.engine import wording
from patchq.engine.implied import (
    DEFS,
    SAYS_NOTHING,
    Def,
    Form,
    Item,
    Scope,
    any_value,
    imported,
    plain,
    rows,
    silent,
    targets,
)

_ALIKE = 0.3
_IMPORTS = (ast.Import, ast.ImportFrom)


class Reader:
    """Compares the own statements of a scope before and after."""

    def __init__(self, old: Scope, new: Scope) -> None:
        self.old, self.new = old, new
        node = new.node
        self.holes = wording.holes(node) if isinstance(node, Def) else {}
        self.block: Sequence[ast.stmt] = getattr(node, "body", [])
        self.vanished = [
            one for one in old.own if wording.key(wording.header(one)) not in new.keys
        ]
        self.paired: set[int] = set()

    def found(self) -> Iterator[Item]:
        """Yield what is new or changed."""
        yield from self._walk(self.block)

    def gone(self) -> Iterator[Item]:
        """Yield what is there no more and has no later form; `found` is asked before."""
        for one in self.vanished:
            if isinstance(one, _IMPORTS):
                left = _imports(one, self.new.imported)
                if left is not None:
                    yield self._item(one, [(("absent", left),)], gone=rows(one))
            elif id(one) not in self.paired and not silent(one):
                bare = _emptied(one)
                yield self._item(one, [(("absent", bare),)], gone=rows(one))

    def _walk(self, block: Sequence[ast.stmt]) -> Iterator[Item]:
        for one in block:
            if silent(one) or isinstance(one, DEFS):
                continue
            if isinstance(one, _IMPORTS):
                fresh = _imports(one, self.old.imported)
                if fresh is not None:
                    yield self._item(one, [(("", fresh),)], loose=False)
            elif wording.key(wording.header(one)) not in self.old.keys:
                yield self._changed(one)
            else:
                for inside in wording.blocks(one):
                    yield from self._walk(inside)

    def _changed(self, node: ast.stmt) -> Item:
        was = self._earlier(node)
        content = self._content(node)
        forms: list[ast.stmt] = []
        named = list(targets(node))
        if not self.holes and len(named) == 1 and named[0] not in self.old.bound:
            forms.append(any_value(named[0]))
        if was is not None:
            forms.append(wording.renamed(wording.general(plain(content), was), self.holes))
        forms.append(wording.renamed(wording.short(plain(content)), self.holes))
        forms.append(wording.renamed(plain(content), self.holes))
        forms.append(wording.renamed(content, self.holes))
        forms.append(content)
        bare = _emptied(content)
        if bare is not content:
            forms += [wording.renamed(bare, self.holes), bare]
        gone = rows(was) if was is not None else frozenset()
        whole: list[Form] = [(("", one),) for one in forms]
        return self._item(node, whole, gone=gone, lines=self._lines(node))

    def _item(
        self,
        node: ast.stmt,
        forms: Sequence[Form],
        *,
        gone: frozenset[int] = frozenset(),
        lines: frozenset[int] | None = None,
        loose: bool = True,
    ) -> Item:
        known: dict[str, Form] = {}
        for form in forms:
            known.setdefault("\n".join(mark + wording.key(one) for mark, one in form), form)
        lines = rows(node) if lines is None else lines
        # What has only gone has no line in the new text; its own orders it.
        lines = frozenset() if forms[0][0][0] == "absent" else lines
        within = isinstance(self.new.node, Def)
        return Item(
            self.new.way, node.lineno, lines, gone, tuple(known.values()), loose=loose and within
        )

    def _earlier(self, node: ast.stmt) -> ast.stmt | None:
        """Return the statement that this one was before."""
        best, most = None, _ALIKE
        text = wording.key(wording.header(node))[:2_000]
        for one in self.vanished:
            same = type(one) is type(node) or {type(one), type(node)} <= {
                ast.Assign,
                ast.AnnAssign,
            }
            if not same or id(one) in self.paired:
                continue
            ratio = difflib.SequenceMatcher(
                None, wording.key(wording.header(one))[:2_000], text, autojunk=False
            ).ratio()
            if list(targets(one)) == list(targets(node)) != []:
                ratio += 1
            if ratio > most:
                best, most = one, ratio
        if best is not None:
            self.paired.add(id(best))
        return best

    def _content(self, node: ast.stmt) -> ast.stmt:
        """Return a new statement, and of what is under it what is new as well."""
        out = copy.copy(node)
        for name in ("body", "orelse", "finalbody"):
            block = getattr(out, name, None)
            if isinstance(block, list) and block:
                chain = name == "orelse" and len(block) == 1 and isinstance(block[0], ast.If)
                kept = self._further(block[0]) if chain else self._kept(block)
                setattr(out, name, kept or ([SAYS_NOTHING] if name == "body" else []))
        for name in ("handlers", "cases"):
            if getattr(out, name, None):
                clauses = [copy.copy(clause) for clause in getattr(out, name)]
                for clause in clauses:
                    clause.body = self._kept(clause.body) or [SAYS_NOTHING]
                setattr(out, name, clauses)
        return out

    def _further(self, node: ast.stmt) -> list[ast.stmt]:
        """Return an `elif`, an old one too, for what is new in it."""
        return [self._content(node)] if self._kept([node]) else []

    def _kept(self, block: Sequence[ast.stmt]) -> list[ast.stmt]:
        out: list[ast.stmt] = []
        for one in block:
            if silent(one) or isinstance(one, DEFS):
                continue
            if wording.key(wording.header(one)) not in self.old.keys:
                out.append(self._content(one))
            else:
                out += [kept for inside in wording.blocks(one) for kept in self._kept(inside)]
        return out

    def _lines(self, node: ast.stmt) -> frozenset[int]:
        """The lines of a new statement and of all that is new under it."""
        out = rows(node)
        for inside in wording.blocks(node):
            for one in inside:
                fresh = wording.key(wording.header(one)) not in self.old.keys
                under = self._lines(one)
                out |= under if fresh else under - rows(one)
        return out


def _imports(node: ast.stmt, known: set[tuple[object, ...]]) -> ast.stmt | None:
    """Return an import statement with the names that are not known."""
    assert isinstance(node, ast.Import | ast.ImportFrom)
    fresh = [
        alias
        for alias, said in zip(node.names, imported(node), strict=True)
        if said not in known and alias.name != "*"
    ]
    if not fresh:
        return None
    out = copy.copy(node)
    out.names = fresh
    return out


def _emptied(node: ast.stmt) -> ast.stmt:
    """Return a compound statement with nothing in it; any other as it is."""
    if not any(True for _ in wording.blocks(node)):
        return node
    out = wording.header(node)
    if isinstance(node, ast.Match):
        out.cases = node.cases  # type: ignore[attr-defined]
        return node
    out.body = [SAYS_NOTHING]  # type: ignore[attr-defined]
    if isinstance(node, ast.Try | ast.TryStar):
        out.handlers = [  # type: ignore[attr-defined]
            ast.ExceptHandler(one.type, one.name, [SAYS_NOTHING]) for one in node.handlers
        ]
        out.finalbody = [] if node.handlers else [SAYS_NOTHING]  # type: ignore[attr-defined]
    return out
