"""Parsed Python texts, each parsed once in a process, and where their statements stand.

Two parsers: the running Python's own is quick and has the better words, libcst
reads 3.8 to 3.14 whatever Python runs it. A text is Python if either says so;
sketches are matched on libcst's trees. Either is asked only what `LARGEST` and
`nesting` allow: a text is data from outside, and no parser may fall over it.
Lines come without libcst's metadata, which costs far more than the parse: both
parsers see the same statements in the same order, so the quick one lends its
line numbers.
"""

from __future__ import annotations

import ast
import functools
import platform
import re
import tokenize
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from patchq.engine import nesting

if TYPE_CHECKING:
    import libcst as cst

# Bytes. Python's parser reads some 0.5 MB a second into a tree, libcst a tenth of that.
LARGEST, LARGEST_TREE = 2_000_000, 1_000_000
BLOCKS = ("body", "handlers", "orelse", "finalbody", "cases")


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a text is not Python: 1-based line and column, that line, and plain words.

    `aside`: what the other parser says. `deep`: it is nested too deep. `large`: it
    was not read at all.
    """

    line: int
    column: int
    text: str
    words: str
    aside: str = ""
    deep: bool = False
    large: bool = False

    def __str__(self) -> str:
        """Return the fault as one clause."""
        return f"line {self.line}, column {self.column}: {self.words}: {self.text.strip()!r}"


class Tree:
    """One parsed text."""

    def __init__(self, module: cst.Module, data: bytes) -> None:
        self.module = module
        self.data = data

    @functools.cached_property
    def lines(self) -> dict[int, int]:
        """The line of every statement, by the id of its node."""
        nodes = list(_statements(self.module))
        parsed = python(self.data)
        if isinstance(parsed, ast.Module):
            rows = [row.lineno for row in _rows(parsed)]
            if len(rows) == len(nodes):
                return {id(node): row for node, row in zip(nodes, rows, strict=True)}
        import libcst as cst

        whole = cst.parse_module(decoded(self.data))  # this tree may lack what is around
        found = positions(whole)
        pairs = zip(nodes, _statements(whole), strict=True)
        return {id(node): found[same][0] for node, same in pairs}


@functools.lru_cache(maxsize=4)
def python(data: bytes) -> ast.Module | Fault:
    """Return the running Python's tree of a text, or the fault it finds."""
    if len(data) > LARGEST:
        return _too_large(data, LARGEST)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(data)
        except SyntaxError as error:
            line = error.lineno or 1
            deep = error.msg.startswith("too many ")
            return Fault(line, error.offset or 1, _line(data, line), str(error.msg), deep=deep)
        except (RecursionError, MemoryError):
            return too_deep(data)
        except ValueError as error:
            return Fault(1, 1, _line(data, 1), str(error))


def too_deep(data: bytes) -> Fault:
    """Return the fault of a text that is nested deeper than a parser goes."""
    return Fault(1, 1, _line(data, 1), nesting.DEEP, deep=True)


def _too_large(data: bytes, bound: int) -> Fault:
    words = f"too large to be judged: more than {bound // 1_000_000} MB"
    return Fault(1, 1, _line(data[:1_000], 1), words, deep=True, large=True)


def rows(data: bytes) -> list[bytes]:
    r"""Return the lines of a text as Python's tokenizer counts them, without their ends.

    Example:
        >>> rows(b"a\x0cb\r\nc\rd\n")
        [b'a\x0cb', b'c', b'd', b'']
    """
    return re.split(rb"\r\n?|\n", data)


def decoded(data: bytes) -> str:
    """Return a Python text in the encoding that it declares.

    Raises: ValueError, LookupError, SyntaxError as Python would.
    """
    first = (line + b"\n" for line in data.split(b"\n", 2)[:2])
    return data.decode(tokenize.detect_encoding(first.__next__)[0])


@functools.lru_cache(maxsize=16)
def tree(data: bytes, *, comments: bool = False) -> Tree | Fault:
    """Return libcst's tree of a text, or why neither parser reads it.

    Without `comments` it shares statements with the trees of texts like it. libcst is
    not asked where Python gives up for depth, nor where `nesting` finds trouble: it
    would take the process along.
    """
    import libcst as cst

    from patchq.engine import chunks

    own = python(data)
    if isinstance(own, Fault) and own.deep:
        return own
    if len(data) > LARGEST_TREE:
        return _too_large(data, LARGEST_TREE)
    try:
        text = decoded(data)
        why = nesting.trouble(text)
        if why is not None:
            if isinstance(own, Fault) and why != nesting.DEEP:
                return own
            return replace(too_deep(data), words=why)
        if comments or isinstance(own, Fault):
            return Tree(cst.parse_module(text), data)
        return Tree(chunks.module(text, own), data)
    except cst.ParserSyntaxError as error:
        text = _line(data, error.raw_line)
        if isinstance(own, ast.Module):
            words = f"Python {platform.python_version()} reads this text, libcst does not"
            return Fault(error.raw_line, error.raw_column + 1, text, words)
        if own.line == error.raw_line or not text.strip():
            return own
        return replace(own, aside=f"libcst stops at line {error.raw_line}: {text.strip()!r}")
    # libcst 1.9 reads "a" t"b", which nobody else does, and then stumbles over it.
    except (ValueError, LookupError, SyntaxError, RecursionError, cst.CSTLogicError) as error:
        return own if isinstance(own, Fault) else Fault(1, 1, _line(data, 1), str(error))


def positions(module: cst.Module) -> dict[cst.CSTNode, tuple[int, int, int]]:
    """Return line, column (0-based) and last line of every node; for small texts only."""
    from libcst.metadata import MetadataWrapper, PositionProvider

    found = MetadataWrapper(module, unsafe_skip_copy=True).resolve(PositionProvider)
    return {
        node: (where.start.line, where.start.column, where.end.line)
        for node, where in found.items()
    }


def _line(data: bytes, number: int) -> str:
    lines = rows(data)
    return lines[number - 1].decode(errors="replace") if number <= len(lines) else ""


def _statements(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Every statement of a module in the order of the text, nested defs included."""
    import libcst as cst

    if isinstance(node, cst.SimpleStatementLine | cst.SimpleStatementSuite):
        yield from node.body
        return
    if isinstance(node, cst.BaseCompoundStatement):
        yield node
    for name in BLOCKS:
        part = getattr(node, name, None)
        for child in part if isinstance(part, list | tuple) else (part,):
            if isinstance(child, cst.CSTNode) and not isinstance(child, cst.BaseExpression):
                yield from _statements(child)


def _rows(node: ast.AST) -> Iterator[ast.stmt]:
    if isinstance(node, ast.stmt):
        yield node
    for name in ("body", "handlers", "orelse", "finalbody", "cases"):
        part = getattr(node, name, None)
        if isinstance(part, list):
            for child in part:
                yield from _rows(child)
