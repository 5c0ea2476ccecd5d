"""What a tree says without its layout, as a value that can be compared and hashed."""

from __future__ import annotations

import dataclasses
import re

import libcst as cst

from patchq.engine import strings

_LAYOUT = re.compile(
    r"whitespace|^(lpar|rpar|comma|semicolon|lbracket|rbracket|lbrace|rbrace|leading_lines|header|"
    r"footer|indent|lines_after_decorators|equal|colon|first_colon|second_colon|separator|dot|"
    r"open_paren|close_paren)$"
)
_FIELDS: dict[type, tuple[str, ...]] = {}


def fields(kind: type) -> tuple[str, ...]:
    """Return the fields of a kind of node that are more than layout."""
    found = _FIELDS.get(kind)
    if found is None:
        names = [field.name for field in dataclasses.fields(kind)]
        found = _FIELDS[kind] = tuple(name for name in names if not _LAYOUT.search(name))
    return found


def imprint(node: object) -> object:
    """Return what a tree says without its layout: equal for equal trees (R5)."""
    if type(node) in strings.KINDS:
        return (
            "string",
            *(
                piece if isinstance(piece, str | bytes) else _piece(piece)
                for piece in strings.pieces(node)
            ),
        )
    if type(node) is cst.Subscript:
        return ("Subscript", imprint(node.value), *(imprint(item) for item in slices(node)))
    if isinstance(node, list | tuple):
        return tuple(imprint(item) for item in node)
    if dataclasses.is_dataclass(node):
        said = (imprint(getattr(node, name)) for name in fields(type(node)))
        return (type(node).__name__, *said)
    return node if isinstance(node, str) else repr(node)


def spec(node: cst.FormattedStringExpression) -> tuple[cst.BaseFormattedStringContent, ...]:
    """Return what stands behind the colon of an f-string's braces."""
    return tuple(node.format_spec or ())


def slices(node: cst.Subscript) -> list[cst.CSTNode]:
    """Return the items of a subscript; `x[(1, 2)]` has the same two as `x[1, 2]`."""
    plain = [
        item.slice.value
        if isinstance(item.slice, cst.Index) and not item.slice.star
        else item.slice
        for item in node.slice
    ]
    if len(plain) == 1 and isinstance(plain[0], cst.Tuple):
        elements = plain[0].elements
        return [item.value if isinstance(item, cst.Element) else item for item in elements]
    return list(plain)


def _piece(node: cst.FormattedStringExpression) -> object:
    return (imprint(node.expression), node.conversion, bool(node.equal), imprint(spec(node)))
