"""The words of a Python text, each with what stands before it.

Nothing is lost: the words with what is before them give the text back. This knows
no grammar: a text of a newer Python is read as well as one of an older.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

_SPACE = r"(?P<space>(?:[ \t\f]|\\\r?\n)+)"
_STRING = (
    r"(?P<string>[rRbBuUfFtT]{0,3}(?:"
    r'"""(?:[^\\"]|\\[\s\S]|"(?!""))*"""|' + r"'''(?:[^\\']|\\[\s\S]|'(?!''))*'''|"
    r'"(?:[^\\"\r\n]|\\[\s\S])*"|' + r"'(?:[^\\'\r\n]|\\[\s\S])*'))"
)
_NUMBER = (
    r"(?P<number>0[xXbBoO][\da-fA-F_]+|"
    r"(?:\d[\d_]*(?:\.[\d_]*)?|\.\d[\d_]*)(?:[eE][-+]?\d[\d_]*)?[jJ]?)"
)
_SIGN = (
    r"(?P<sign>\*\*=?|//=?|>>=?|<<=?|->|:=|\.\.\.|[-+*/%&|^@=<>!]=|[-+*/%&|^~<>=!@.,:;()\[\]{}])"
)
_WORD = re.compile(
    rf"{_SPACE}|(?P<comment>#[^\r\n]*)|(?P<newline>\r?\n)|{_STRING}|{_NUMBER}"
    rf"|(?P<name>[^\W\d]\w*)|{_SIGN}"
)
_PREFIX = re.compile(r"[a-zA-Z]*")
# Brackets, and blocks, in one another: what merges them calls itself for each.
DEEPEST = 30
OPEN, CLOSE = frozenset("([{"), frozenset(")]}")


T = TypeVar("T")


class kept(Generic[T]):  # noqa: N801 - stands where `property` would
    """A property that is computed once: functools' own takes a lock each time it is asked."""

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self.compute, self.__doc__ = compute, compute.__doc__

    def __get__(self, node: object, kind: type | None = None) -> T:
        """Compute it, and put it where the next look finds it before this."""
        found = node.__dict__[self.compute.__name__] = self.compute(node)
        return found


class Unreadable(Exception):
    """The text is not made of Python's words, or its brackets do not close."""


@dataclass(frozen=True)
class Token:
    """A word, and the spaces, comments and line ends before it."""

    text: str
    before: str
    kind: str

    @kept
    def norm(self) -> str:
        """The word as it is compared: strings with one kind of quotes."""
        return _unquoted(self.text) if self.kind == "string" else self.text


@dataclass(frozen=True)
class Line:
    """A logical line: its words, and what follows the last: comment and line end.

    `above`: the blank and comment lines before it. The last line of a text may have
    no words.
    """

    above: str
    indent: str
    tokens: tuple[Token, ...]
    tail: str


def lines(text: str) -> Iterator[Line]:
    """Yield the logical lines of a text.

    Raises: Unreadable.
    """
    above = before = ""
    found: list[Token] = []
    depth = at = 0
    while at < len(text):
        match = _WORD.match(text, at)
        if match is None or match.lastgroup is None:
            raise Unreadable(f"at {at}: {text[at : at + 20]!r}")
        kind, word, at = match.lastgroup, match[0], match.end()
        if kind in ("space", "comment"):
            before += word
        elif kind == "newline":
            before += word
            if not found:
                above, before = above + before, ""
            elif not depth:
                yield _line(above, found, before)
                above, before, found = "", "", []
        else:
            depth += (word in OPEN) - (word in CLOSE)
            if depth > DEEPEST:
                raise Unreadable("brackets are nested too deep")
            found.append(Token(word, before, kind))
            before = ""
    if depth:
        raise Unreadable("a bracket is not closed")
    if found:
        yield _line(above, found, before)
    elif above or before:
        yield Line(above + before, "", (), "")


def _line(above: str, found: list[Token], tail: str) -> Line:
    first = found[0]
    found[0] = Token(first.text, "", first.kind)
    return Line(above, first.before, tuple(found), tail)


def _unquoted(text: str) -> str:
    """Return a string with double quotes where that changes nothing else."""
    prefix = _PREFIX.match(text)
    assert prefix is not None
    head, body = prefix[0].lower().replace("u", ""), text[prefix.end() :]
    for quote, other in (("'''", '"""'), ("'", '"')):
        if body.startswith(quote) and len(body) >= 2 * len(quote):
            inner = body[len(quote) : -len(quote)]
            if '"' not in inner and "\\" not in inner and "{" not in inner:
                return head + other + inner + other
            break
    return head + body
