"""A text whose syntax is newer than the running Python, said in older words.

libcst reads it, and what is new is put into syntax that every supported Python has;
the running Python's parser then reads that, so one reader gives the same answers
for old and for new syntax. Lines stay where they were. What is put how:

- ``def f[T: B = D]() -> R``: ``def f() -> (MARK, ("T", (B,), (D,)), (R,))``
- ``class A[T](B)``: ``class A(B, MARK=(("T", (), ()),))``
- ``type X[T] = V``: ``X: (MARK, ("T", (), ()), (V,))``
- f-strings and t-strings: the tuple of the expressions in them
- ``except A, B``: ``except (A, B)``
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

import libcst as cst

from patchq.engine import trees

_MARK = "__patchq_types__"
_String = cst.FormattedString | cst.TemplatedString | cst.ConcatenatedString


class TypeAlias(ast.stmt):
    """``type name[type_params] = value``, with the fields of Python's own node."""

    _fields = ("name", "value")

    def __init__(self, name: ast.expr, value: ast.expr | None) -> None:
        super().__init__()
        self.name, self.value = name, value


@dataclass(frozen=True, slots=True)
class TypeParameter:
    """One type parameter, with the fields of Python's own nodes."""

    name: str
    bound: ast.expr | None
    default_value: ast.expr | None


def lowered(tree: trees.Tree) -> ast.Module | None:
    """Return the running Python's tree of a text that it cannot read; None if nothing helps.

    Raises: RecursionError where the text is nested deeper than the visitors go.
    """
    module = tree.module.visit(_Lower())
    assert isinstance(module, cst.Module)
    parsed = trees.python(module.bytes)
    if not isinstance(parsed, ast.Module):
        return None
    for node in ast.walk(parsed):
        _raise(node)
    return parsed


class _Lower(cst.CSTTransformer):
    def visit_FormattedString(self, node: cst.FormattedString) -> bool:  # noqa: N802 - libcst's
        """Leave the parts to `leave`."""
        return False

    def visit_TemplatedString(self, node: cst.TemplatedString) -> bool:  # noqa: N802
        """Leave the parts to `leave`."""
        return False

    def visit_ConcatenatedString(self, node: cst.ConcatenatedString) -> bool:  # noqa: N802
        """Leave the parts to `leave`."""
        return False

    def leave_FormattedString(  # noqa: N802
        self, original_node: cst.FormattedString, updated_node: cst.FormattedString
    ) -> cst.BaseExpression:
        """Return the expressions in the string."""
        return self._string(original_node)

    def leave_TemplatedString(  # noqa: N802
        self, original_node: cst.TemplatedString, updated_node: cst.TemplatedString
    ) -> cst.BaseExpression:
        """Return the expressions in the string."""
        return self._string(original_node)

    def leave_ConcatenatedString(  # noqa: N802
        self, original_node: cst.ConcatenatedString, updated_node: cst.ConcatenatedString
    ) -> cst.BaseExpression:
        """Return the expressions in the strings, or the strings where there is none."""
        found = list(_expressions(original_node))
        return self._string(original_node) if found else original_node

    def _string(self, node: _String) -> cst.BaseExpression:
        inside = [one.visit(self) for one in _expressions(node)]
        return _tuple([one for one in inside if isinstance(one, cst.BaseExpression)], node)

    def leave_ExceptHandler(  # noqa: N802
        self, original_node: cst.ExceptHandler, updated_node: cst.ExceptHandler
    ) -> cst.ExceptHandler:
        """Put the parentheses around what is caught."""
        caught = updated_node.type
        return updated_node.with_changes(type=_closed(caught)) if caught else updated_node

    def leave_ExceptStarHandler(  # noqa: N802
        self, original_node: cst.ExceptStarHandler, updated_node: cst.ExceptStarHandler
    ) -> cst.ExceptStarHandler:
        """Put the parentheses around what is caught."""
        return updated_node.with_changes(type=_closed(updated_node.type))

    def leave_FunctionDef(  # noqa: N802
        self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef
    ) -> cst.FunctionDef:
        """Put type parameters into what is returned."""
        types = updated_node.type_parameters
        if types is None:
            return updated_node
        gives = updated_node.returns.annotation if updated_node.returns else None
        said = _tuple([cst.Name(_MARK), *_types(types), _maybe(gives)], types)
        # The annotation that was there may lie on lines of its own: they are in `said`.
        return updated_node.with_changes(
            type_parameters=None, returns=cst.Annotation(annotation=said)
        )

    def leave_ClassDef(  # noqa: N802
        self, original_node: cst.ClassDef, updated_node: cst.ClassDef
    ) -> cst.ClassDef:
        """Put type parameters among the keywords."""
        types = updated_node.type_parameters
        if types is None:
            return updated_node
        mark = cst.Arg(_tuple(_types(types), types), keyword=cst.Name(_MARK))
        return updated_node.with_changes(
            type_parameters=None,
            lpar=updated_node.lpar if isinstance(updated_node.lpar, cst.LeftParen) else _LEFT,
            rpar=updated_node.rpar if isinstance(updated_node.rpar, cst.RightParen) else _RIGHT,
            keywords=[mark, *updated_node.keywords],
        )

    def leave_TypeAlias(  # noqa: N802
        self, original_node: cst.TypeAlias, updated_node: cst.TypeAlias
    ) -> cst.AnnAssign:
        """Return a bare annotation."""
        types = updated_node.type_parameters
        said = [cst.Name(_MARK), *(_types(types) if types else ()), _maybe(updated_node.value)]
        return cst.AnnAssign(
            target=updated_node.name, annotation=cst.Annotation(_tuple(said, original_node))
        )


_LEFT, _RIGHT = cst.LeftParen(), cst.RightParen()
_BLANK = cst.Module([])


def _expressions(node: cst.CSTNode) -> Iterable[cst.BaseExpression]:
    """The outermost expressions in a string, those of its formats too, as they were."""
    match node:
        case cst.ConcatenatedString():
            yield from _expressions(node.left)
            yield from _expressions(node.right)
        case cst.FormattedString() | cst.TemplatedString():
            for part in node.parts:
                yield from _expressions(part)
        case cst.FormattedStringExpression() | cst.TemplatedStringExpression():
            yield node.expression
            for part in node.format_spec or ():
                yield from _expressions(part)


def _types(node: cst.TypeParameters) -> list[cst.BaseExpression]:
    out: list[cst.BaseExpression] = []
    for one in node.params:
        bound = one.param.bound if isinstance(one.param, cst.TypeVar) else None
        name = cst.SimpleString(f'"{one.param.name.value}"')
        out.append(_tuple([name, _maybe(bound), _maybe(one.default)]))
    return out


def _maybe(node: cst.BaseExpression | None) -> cst.BaseExpression:
    return _tuple([node] if node else [])


def _tuple(
    found: list[cst.BaseExpression], instead: cst.CSTNode | None = None
) -> cst.BaseExpression:
    """A tuple that takes as many lines as what it stands for."""
    elements = [cst.Element(_closed(one), cst.Comma()) for one in found]
    made = cst.Tuple(elements, lpar=[_LEFT], rpar=[_RIGHT])
    missing = _lines(instead) - _lines(made) if instead else 0
    if missing <= 0:
        return made
    space = cst.ParenthesizedWhitespace(empty_lines=[cst.EmptyLine()] * (missing - 1))
    return made.with_changes(lpar=[cst.LeftParen(whitespace_after=space)])


def _lines(node: cst.CSTNode) -> int:
    return _BLANK.code_for_node(node).count("\n")


def _closed(node: cst.BaseExpression) -> cst.BaseExpression:
    bare = isinstance(node, cst.Tuple | cst.Yield | cst.NamedExpr | cst.StarredElement)
    if bare and not node.lpar and not isinstance(node, cst.StarredElement):
        return node.with_changes(lpar=[_LEFT], rpar=[_RIGHT])
    return node


def _raise(node: ast.AST) -> None:
    """Put type parameters and aliases where newer Pythons have them."""
    for field in trees.BLOCKS:
        block = getattr(node, field, None)
        if isinstance(block, list):
            block[:] = [_alias(one) for one in block]
    match node:
        case ast.FunctionDef(returns=gives) | ast.AsyncFunctionDef(returns=gives):
            match gives:
                case ast.Tuple(elts=[ast.Name(id=name), *types, value]) if name == _MARK:
                    node.returns = _first(value)
                    _give(node, types)
        case ast.ClassDef(
            keywords=[ast.keyword(arg=name, value=ast.Tuple(elts=types)), *rest]
        ) if name == _MARK:
            node.keywords = rest
            _give(node, types)


def _alias(node: ast.AST) -> ast.AST:
    match node:
        case ast.AnnAssign(annotation=ast.Tuple(elts=[ast.Name(id=name), *types, value])) if (
            name == _MARK
        ):
            found = ast.copy_location(TypeAlias(node.target, _first(value)), node)
            _give(found, types)
            return found
    return node


def _give(node: ast.AST, types: Iterable[ast.expr]) -> None:
    given = []
    for one in types:
        assert isinstance(one, ast.Tuple)
        name, bound, default = one.elts
        assert isinstance(name, ast.Constant)
        given.append(TypeParameter(str(name.value), _first(bound), _first(default)))
    node.type_params = given  # type: ignore[attr-defined]  # as newer Pythons have it


def _first(node: ast.expr) -> ast.expr | None:
    assert isinstance(node, ast.Tuple)
    return node.elts[0] if node.elts else None
