"""What a diff says of the statements of one scope: new, changed, gone."""

from __future__ import annotations

import ast
import copy
import difflib
from collections.abc import Iterator, Sequence

from patchq.engine import branches, wording
from patchq.engine.implied import (
    DEFS,
    FEW,
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
            one for one, said in zip(old.own, old.said, strict=True) if said not in new.keys
        ]
        self.unknown = {
            id(one) for one, said in zip(new.own, new.said, strict=True) if said not in old.keys
        }
        self.pairs = branches.Pairs(old, new)
        grown = (one for one in new.own if self.pairs.was(one) and self.pairs.fresh(one))
        self.asked = self.unknown.union(map(id, grown))
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
                bare = branches.emptied(one)
                yield self._item(one, [(("absent", bare),)], gone=rows(one))
        for one, gone in self.pairs.lost():
            bare = branches.with_clauses(one, gone, lambda *_: [])
            where = branches.clauses(one)
            lines = frozenset().union(*(where[clause] for clause in gone))
            yield self._item(one, [(("absent", bare),)], gone=lines)

    def _walk(self, block: Sequence[ast.stmt]) -> Iterator[Item]:
        for one in block:
            if silent(one) or isinstance(one, DEFS):
                continue
            if isinstance(one, _IMPORTS):
                fresh = _imports(one, self.old.imported)
                if fresh is not None:
                    yield self._item(one, [(("", fresh),)], loose=False)
            elif self._anew(one):
                yield self._changed(one)
            else:
                for inside in wording.blocks(one):
                    yield from self._walk(inside)

    def _anew(self, node: ast.stmt) -> bool:
        """Return whether a statement is asked for, not only what is new under it."""
        return id(node) in self.asked or (not self.pairs.was(node) and self._brings(node))

    def _brings(self, node: ast.stmt) -> bool:
        """Return whether something in a statement is new, or it is new itself."""
        within = (one for one in ast.walk(node) if isinstance(one, ast.stmt))
        return any(id(one) in self.asked and not silent(one) for one in within)

    def _changed(self, node: ast.stmt) -> Item:
        was = self._earlier(node) if id(node) in self.unknown else None
        content = self._content(node)
        forms: list[ast.stmt] = []
        named = list(targets(node))
        if not self.holes and len(named) == 1 and named[0] not in self.old.bound:
            forms.append(any_value(named[0]))
        if was is not None:
            forms.append(wording.renamed(wording.general(plain(content), was), self.holes))
        else:
            all_of_it = self._content(node, whole=True)
            forms.append(wording.renamed(wording.short(plain(all_of_it)), self.holes))
        forms.append(wording.renamed(wording.short(plain(content)), self.holes))
        forms.append(wording.renamed(plain(content), self.holes))
        forms.append(wording.renamed(content, self.holes))
        forms.append(content)
        bare = branches.emptied(content)
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

    def _content(self, node: ast.stmt, *, whole: bool = False) -> ast.stmt:
        """Return a new statement, and of what is under it what is new as well.

        `whole`: of what the statement brings under it all, where it is short and was there.
        """
        fresh = brought = self.pairs.fresh(node)
        if not self.pairs.was(node):
            fresh -= {"orelse", "finalbody"}
            brought = fresh | {"body"}

        def held(block: Sequence[ast.stmt], clause: str) -> list[ast.stmt]:
            if clause == "elif":
                return self._further(block[0])
            return self._kept(block) or (_short(block) if whole and clause in brought else [])

        return branches.with_clauses(node, fresh, held)

    def _further(self, node: ast.stmt) -> list[ast.stmt]:
        """Return an `elif`, an old one too, for what is new in it."""
        return [self._content(node)] if self._brings(node) else []

    def _kept(self, block: Sequence[ast.stmt]) -> list[ast.stmt]:
        out: list[ast.stmt] = []
        for one in block:
            if silent(one) or isinstance(one, DEFS):
                continue
            if self._anew(one):
                out.append(self._content(one))
            else:
                out += [kept for inside in wording.blocks(one) for kept in self._kept(inside)]
        return out

    def _lines(self, node: ast.stmt) -> frozenset[int]:
        """The lines of a new statement and of all that is new under it."""
        begins = branches.clauses(node)
        out = rows(node).union(*(begins[clause] for clause in self.pairs.fresh(node)))
        for inside in wording.blocks(node):
            for one in inside:
                under = self._lines(one)
                out |= under if id(one) in self.unknown else under - rows(one)
        return out


def _short(block: Sequence[ast.stmt]) -> list[ast.stmt]:
    """Return a block, or nothing for one that is too long to be repeated."""
    inside = [one for top in block for one in ast.walk(top) if isinstance(one, ast.stmt)]
    if len(inside) > FEW or any(isinstance(one, (*DEFS, *_IMPORTS)) for one in inside):
        return []
    return [one for one in block if not silent(one)]


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
