"""The outline of a file whose syntax is newer than the running Python: by libcst.

The same facts as `definitions.outline` finds; a test holds the two together.
"""

from __future__ import annotations

import libcst as cst

from patchq.engine import names, sites, trees
from patchq.engine.outlines import MADE, WILL_FAIL, Import, Outline


def outline(tree: trees.Tree) -> Outline:
    """Return the imports and the names of a module that libcst has parsed."""
    reader = _Reader(tree.lines)
    for line in tree.module.body:
        reader.statement(line, "", guarded=False, scope=True)
    found = reader.names
    return Outline(
        tuple(reader.imports),
        frozenset(found),
        tuple(reader.stars),
        reader.anything or "__getattr__" in found,
        "__path__" in found,
    )


class _Reader:
    def __init__(self, rows: dict[int, int]) -> None:
        self.rows = rows
        self.imports: list[Import] = []
        self.names: set[str] = set()
        self.stars: list[tuple[int, str]] = []
        self.anything = False

    def statement(self, node: cst.CSTNode, where: str, *, guarded: bool, scope: bool) -> None:
        """Take in one statement, line or clause with all it holds."""
        match node:
            case cst.Import() | cst.ImportFrom():
                self._import(node, where, guarded, scope)
                return
            case cst.Global():
                self.names.update(item.name.value for item in node.names)
            case cst.FunctionDef() | cst.ClassDef():
                if scope:
                    self.names.add(node.name.value)
                where, scope = f"{where}.{node.name.value}" if where else node.name.value, False
            case cst.Try() | cst.TryStar():
                inner = guarded or any(_expects(handler) for handler in node.handlers)
                self.statement(node.body, where, guarded=inner, scope=scope)
                for part in list(sites.parts(node))[1:]:
                    self.statement(part, where, guarded=guarded, scope=scope)
                return
            case cst.SimpleStatementLine() | cst.BaseSuite():
                for inside in node.body:
                    self.statement(inside, where, guarded=guarded, scope=scope)
                return
        parts = list(sites.parts(node))
        for part in parts:
            self.statement(part, where, guarded=guarded, scope=scope)
        if scope:
            bound = _Bound(self)
            bound.store(node.name if isinstance(node, cst.TypeAlias) else _target(node))
            inner_ids = set(map(id, parts))
            for child in node.children:
                if id(child) not in inner_ids:
                    child.visit(bound)

    def _import(
        self, node: cst.Import | cst.ImportFrom, where: str, guarded: bool, scope: bool
    ) -> None:
        level = len(node.relative) if isinstance(node, cst.ImportFrom) else 0
        base = node.module if isinstance(node, cst.ImportFrom) else None
        line = self.rows.get(id(node), 0)
        for module, name, alias in names.imported(node, ""):
            plain = names.dotted(base) if base else "" if level else module
            self.imports.append(Import(level, plain, name, line, where, guarded))
            if scope and name == "*":
                self.stars.append((level, plain))
            elif scope:
                self.names.add(alias or name or plain.partition(".")[0])


class _Bound(cst.CSTVisitor):
    """Names that targets of module level bind, or calls make at run time."""

    def __init__(self, reader: _Reader) -> None:
        super().__init__()
        self.reader = reader

    def store(self, node: cst.CSTNode | None) -> None:
        """Take in one target."""
        match node:
            case cst.Name():
                self.reader.names.add(node.value)
            case cst.Tuple() | cst.List():
                for element in node.elements:
                    self.store(element.value)
            case cst.StarredElement():
                self.store(node.value)

    def visit_AssignTarget(self, node: cst.AssignTarget) -> None:  # noqa: N802 - libcst's name
        """Take in an assignment's target."""
        self.store(node.target)

    def visit_NamedExpr(self, node: cst.NamedExpr) -> None:  # noqa: N802
        """Take in a walrus."""
        self.store(node.target)

    def visit_AsName(self, node: cst.AsName) -> None:  # noqa: N802
        """Take in `with ... as` and `except ... as`."""
        self.store(node.name)

    def visit_MatchAs(self, node: cst.MatchAs) -> None:  # noqa: N802
        """Take in a capture of a `case`."""
        self.store(node.name)

    def visit_MatchStar(self, node: cst.MatchStar) -> None:  # noqa: N802
        """Take in the rest of a sequence."""
        self.store(node.name)

    def visit_MatchMapping(self, node: cst.MatchMapping) -> None:  # noqa: N802
        """Take in the rest of a mapping."""
        self.store(node.rest)

    def visit_Attribute(self, node: cst.Attribute) -> None:  # noqa: N802
        """Note `sys.modules`, by which a module may be anything."""
        if node.attr.value == "modules":
            self.reader.anything = True

    def visit_Name(self, node: cst.Name) -> None:  # noqa: N802
        """Note calls that make names at run time."""
        if node.value in MADE:
            self.reader.anything = True


def _target(node: cst.CSTNode) -> cst.CSTNode | None:
    return node.target if isinstance(node, cst.For | cst.AnnAssign | cst.AugAssign) else None


def _expects(handler: cst.ExceptHandler | cst.ExceptStarHandler) -> bool:
    if handler.type is None:
        return True
    caught = handler.type
    among = [item.value for item in caught.elements] if isinstance(caught, cst.Tuple) else [caught]
    return any(isinstance(one, cst.Name) and one.value in WILL_FAIL for one in among)
