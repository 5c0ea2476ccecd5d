"""String literals by value: quotes, prefixes and joins are layout (R5)."""

from __future__ import annotations

import ast
import functools
import re
import warnings
from collections.abc import Iterator

import libcst as cst

KINDS = frozenset({cst.SimpleString, cst.ConcatenatedString, cst.FormattedString})
Piece = str | bytes | cst.FormattedStringExpression


@functools.lru_cache(maxsize=1024)
def pieces(node: object) -> tuple[Piece, ...]:
    """Return a string as the values it is made of."""
    out: list[Piece] = []
    for piece in _raw_pieces(node):
        last = out[-1] if out else None
        if isinstance(last, str) and isinstance(piece, str):  # noqa: SIM114 - two types
            out[-1] = last + piece
        elif isinstance(last, bytes) and isinstance(piece, bytes):
            out[-1] = last + piece
        else:
            out.append(piece)
    return tuple(out) if len(out) == 1 else tuple(piece for piece in out if piece != "")


def _raw_pieces(node: object) -> Iterator[Piece]:
    if isinstance(node, cst.SimpleString):
        yield _literal(node.value)
    elif isinstance(node, cst.ConcatenatedString):
        yield from _raw_pieces(node.left)
        yield from _raw_pieces(node.right)
    elif isinstance(node, cst.FormattedString):
        raw = "r" in node.prefix.lower()
        yield ""
        for part in node.parts:
            if isinstance(part, cst.FormattedStringText):
                yield _unescaped(part.value, raw)
            elif isinstance(part, cst.FormattedStringExpression):
                yield part


def _literal(text: str) -> str | bytes:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            value = ast.literal_eval(text)
        except (SyntaxError, ValueError, MemoryError):
            return text  # no literal of the running Python's: it is what it looks like
    assert isinstance(value, str | bytes)
    return value


def _unescaped(text: str, raw: bool) -> str:
    text = text.replace("{{", "{").replace("}}", "}")
    if raw or "\\" not in text:
        return text
    quoted = re.sub(r'(?<!\\)((?:\\\\)*)"', r'\1\\"', text).replace("\n", "\\n")
    value = _literal(f'"{quoted}"')
    assert isinstance(value, str)
    return value
