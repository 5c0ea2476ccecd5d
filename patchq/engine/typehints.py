"""What of an annotation is evaluated, and what stands in quotes."""

from __future__ import annotations

import ast
import warnings

from patchq.engine.guards import last

# Whose subscripts are types, as far as quotes go: "b h" in an array's shape is none.
_GENERIC = frozenset(
    "Optional Union List Dict Set FrozenSet Tuple Type Sequence MutableSequence Mapping Iterable "
    "MutableMapping Iterator Generator AsyncGenerator AsyncIterator AsyncIterable Awaitable "
    "Coroutine Callable ClassVar Final Collection Container list dict set frozenset tuple type "
    "deque defaultdict OrderedDict Deque DefaultDict Annotated Required NotRequired ReadOnly "
    "TypeGuard TypeIs Unpack Concatenate".split()
)
# Quotes that are longer are no type that anybody wrote.
_LONGEST = 2_000


def postponed(tree: ast.Module) -> bool:
    """Return True where ``from __future__ import annotations`` keeps them from evaluation."""
    return any(
        isinstance(node, ast.ImportFrom)
        and node.module == "__future__"
        and any(alias.name == "annotations" for alias in node.names)
        for node in tree.body
    )


def parts(node: ast.expr) -> tuple[list[ast.expr], list[ast.expr]]:
    """Return the expressions of an annotation that are evaluated, and those in quotes.

    Example:
        >>> evaluated, quoted = parts(ast.parse("dict[str, 'Box | None']", mode="eval").body)
        >>> [ast.unparse(one) for one in evaluated], [ast.unparse(one) for one in quoted]
        (['dict', 'str'], ['Box', 'None'])
    """
    evaluated: list[ast.expr] = []
    quoted: list[ast.expr] = []
    todo = [node]
    while todo:
        match one := todo.pop():
            case ast.Constant(value=str(text)):
                inside = _parsed(text, one.lineno)
                if inside is not None:
                    more, most = parts(inside)
                    quoted += more + most
            case ast.Subscript(value=value, slice=key) if last(value) in _GENERIC:
                evaluated.append(value)
                if last(value) != "Annotated":
                    todo.append(key)
                elif isinstance(key, ast.Tuple) and key.elts:
                    todo.append(key.elts[0])
                    evaluated += key.elts[1:]
            case ast.BinOp(left=left, op=ast.BitOr(), right=right):
                todo += [right, left]
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                todo += reversed(elements)
            case ast.Starred(value=value):
                todo.append(value)
            case _:
                evaluated.append(one)
    return evaluated, quoted


def _parsed(text: str, line: int) -> ast.expr | None:
    if len(text) > _LONGEST:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            # Parentheses, since a type in quotes may take several lines.
            found = ast.parse(f"({text})", mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None
    for node in ast.walk(found):
        if isinstance(node, ast.expr):
            node.lineno = line
    return found
