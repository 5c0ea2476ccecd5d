"""What a module's ``__all__`` lists, where its text shows that."""

from __future__ import annotations

import ast

NAME = "__all__"


def listed(node: ast.stmt) -> tuple[tuple[str, int], ...] | None:
    """Return the names that a statement puts into ``__all__``, each with its line.

    Empty where the statement is about something else; None where only running it
    would tell.

    Example:
        >>> listed(ast.parse("__all__ += ['a', *('b',)] + ['c']").body[0])
        (('a', 1), ('b', 1), ('c', 1))
        >>> listed(ast.parse("__all__ = other.__all__").body[0]) is None
        True
    """
    match node:
        case ast.Assign(targets=[ast.Name(id=name)], value=value) if name == NAME:
            return _names(value)
        case ast.AnnAssign(target=ast.Name(id=name), value=value) if name == NAME:
            return () if value is None else _names(value)
        case ast.AugAssign(target=ast.Name(id=name), op=ast.Add(), value=value) if name == NAME:
            return _names(value)
        case ast.Expr(
            value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=verb), args=[value])
        ) if name == NAME and verb in ("extend", "append"):
            return _names(value) if verb == "extend" else _names(ast.Tuple([value]))
    return () if not mentions(node) else None


def mentions(node: ast.AST) -> bool:
    """Return True if ``__all__`` stands anywhere in a node."""
    return any(isinstance(one, ast.Name) and one.id == NAME for one in ast.walk(node))


def _names(node: ast.expr) -> tuple[tuple[str, int], ...] | None:
    match node:
        case ast.List(elts=elements) | ast.Tuple(elts=elements) | ast.Set(elts=elements):
            found: list[tuple[str, int]] = []
            for one in elements:
                match one:
                    case ast.Constant(value=str(name)):
                        found.append((name, one.lineno))
                    case ast.Starred(value=inner):
                        more = _names(inner)
                        if more is None:
                            return None
                        found += more
                    case _:
                        return None
            return tuple(found)
        case ast.BinOp(op=ast.Add(), left=left, right=right):
            first, second = _names(left), _names(right)
            return None if first is None or second is None else first + second
    return None
