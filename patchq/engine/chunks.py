"""A module's tree from the trees of its statements, which texts that are alike share.

The sides of a patch, and a patch with one hunk taken back, differ in a few
statements of module level; the others are parsed once in a process. What stands
around a statement (comments, blank lines) is not kept: for texts that are matched,
not for sketches, whose comments are marks.
"""

from __future__ import annotations

import ast
import re
from collections import OrderedDict
from collections.abc import Iterator

import libcst as cst

Lines = tuple[cst.SimpleStatementLine | cst.BaseCompoundStatement, ...]

_ROW = re.compile(r"[^\r\n]*(?:\r\n?|\n)|[^\r\n]+\Z")
# Characters of the statements that are kept, the last used ones.
_MOST = 3_000_000


class _Kept:
    """Statements by their text."""

    def __init__(self) -> None:
        self.found: OrderedDict[str, Lines] = OrderedDict()
        self.size = 0

    def get(self, text: str) -> Lines:
        """Return the statements of a text, parsed if they are not here."""
        if text in self.found:
            self.found.move_to_end(text)
            return self.found[text]
        parsed = self.found[text] = fresh(text)
        self.size += len(text)
        while self.size > _MOST and len(self.found) > 1:
            oldest, _ = self.found.popitem(last=False)
            self.size -= len(oldest)
        return parsed


_kept = _Kept()


def fresh(text: str) -> Lines:
    """Return the statements of a text, of which no other tree has a part."""
    return tuple(cst.parse_module(text).body)


def module(text: str, parsed: ast.Module) -> cst.Module:
    """Return libcst's tree of a text that Python's own parser has read as `parsed`.

    Raises: cst.ParserSyntaxError where libcst does not read the text.
    """
    seen: set[str] = set()
    body: list[cst.SimpleStatementLine | cst.BaseCompoundStatement] = []
    try:
        for chunk in _cut(text, parsed):
            # Nodes are told apart by identity: what is there twice is parsed twice.
            body += fresh(chunk) if chunk in seen else _kept.get(chunk)
            seen.add(chunk)
    except cst.ParserSyntaxError:
        return cst.parse_module(text)  # its lines are the text's own; or a cut went wrong
    return cst.Module(body)


def _cut(text: str, parsed: ast.Module) -> Iterator[str]:
    """Yield the statements of module level, each with what stands above it."""
    rows = _ROW.findall(text)
    begin = end = 0
    for node in parsed.body:
        decorators = getattr(node, "decorator_list", ())
        first = min([node.lineno, *(one.lineno for one in decorators)])
        if first > end > begin:
            yield "".join(rows[begin:end])
            begin = end
        end = max(end, node.end_lineno or node.lineno)
    if end > begin:
        yield "".join(rows[begin:end])
