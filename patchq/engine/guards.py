"""Statements that change what a name or an import below them means."""

from __future__ import annotations

import ast
from collections.abc import Container, Iterable

FAILED_IMPORT = frozenset({"ImportError", "ModuleNotFoundError", "Exception", "BaseException"})
FAILED_NAME = frozenset({"NameError", "UnboundLocalError"})


def catches(handlers: Iterable[ast.ExceptHandler], names: Container[str]) -> bool:
    """Return True if one of the handlers is reached by an exception of these names.

    A bare ``except`` catches all.

    Example:
        >>> handlers = ast.parse("try: a\\nexcept (KeyError, NameError): b").body[0].handlers
        >>> catches(handlers, FAILED_NAME), catches(handlers, FAILED_IMPORT)
        (True, False)
    """
    return any(one.type is None or _named(one.type, names) for one in handlers)


def suppresses(node: ast.With | ast.AsyncWith, names: Container[str]) -> bool:
    """Return True for ``with contextlib.suppress(...)`` of one of the names."""
    return any(
        isinstance(call, ast.Call)
        and last(call.func) == "suppress"
        and any(_named(argument, names) for argument in call.args)
        for call in (item.context_expr for item in node.items)
    )


def type_checking(test: ast.expr) -> bool | None:
    """Return whether a test is true for type checkers only, or false for them only.

    Example:
        >>> [type_checking(ast.parse(text, mode="eval").body)
        ...  for text in ("TYPE_CHECKING and a", "not typing.TYPE_CHECKING", "a")]
        [True, False, None]
    """
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            found = type_checking(inner)
            return None if found is None else not found
        case ast.BoolOp(op=ast.And(), values=values):
            return True if any(type_checking(one) for one in values) else None
        case ast.Name() | ast.Attribute():
            return True if last(test) == "TYPE_CHECKING" else None
    return None


def last(node: ast.AST) -> str:
    """Return the last name of a dotted one, "" for anything else."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


def _named(node: ast.expr, names: Container[str]) -> bool:
    among = node.elts if isinstance(node, ast.Tuple) else [node]
    return any(last(one) in names for one in among)
