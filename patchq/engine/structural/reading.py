"""Texts read into nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from patchq.engine.structural.nodes import Block, Clause, Element, Group, Item, Statement, first
from patchq.engine.structural.tokens import CLOSE, DEEPEST, OPEN, Line, Token, Unreadable, lines

_HEADERS = frozenset("if elif else for while try except finally with def class match case".split())
_FOLLOW = frozenset("elif else except finally".split())
_CLOSES = {"(": ")", "[": "]", "{": "}"}
# Names before a bracket that are no operand.
_WORDS = frozenset(
    "return yield in not and or if elif else while for is lambda assert del raise from await "
    "import with as print except case match".split()
)


def read(text: str) -> Block:
    """Return the statements of a text.

    Raises: Unreadable.
    """
    found = list(lines(text))
    start = ""
    if found:
        start, rest = _header(found[0].above)
        found[0] = replace(found[0], above=rest)
    return replace(_Reader(found).block(""), start=start)


def block(text: str, indent: str) -> Block:
    """Return the statements of a text that stands at an indentation.

    Raises: Unreadable.
    """
    reader = _Reader(list(lines(text)))
    found = reader.block(indent)
    if reader.at < len(reader.lines):
        raise Unreadable("a line stands at no block's indentation")
    return found


def _header(above: str) -> tuple[str, str]:
    """Return the comments that begin a file and end at a blank line, and the rest."""
    rows = above.splitlines(keepends=True)
    last = 0
    for at, row in enumerate(rows):
        if not row.strip():
            last = at + 1
    if not rows or not rows[0].startswith("#"):
        return "", above
    last = last or len(rows)
    return "".join(rows[:last]), "".join(rows[last:])


class _Reader:
    """Puts logical lines under one another by their indentation."""

    def __init__(self, found: list[Line]) -> None:
        self.lines, self.at, self.depth = found, 0, 0

    def block(self, indent: str) -> Block:
        """Return the statements from here that stand at `indent`."""
        found: list[Statement] = []
        self.depth += 1
        if self.depth > DEEPEST:
            raise Unreadable("blocks are nested too deep")
        while self.at < len(self.lines):
            line = self.lines[self.at]
            if not line.tokens or len(line.indent) < len(indent):
                break
            if line.indent != indent:
                raise Unreadable("a line stands at no block's indentation")
            found.append(self._statement(indent))
        self.depth -= 1
        return Block(tuple(found), self._end(indent))

    def _end(self, indent: str) -> str:
        """Take the comments below a block that are indented as it is."""
        if self.at == len(self.lines):
            return ""
        line = self.lines[self.at]
        if not line.tokens and not indent:
            self.at += 1
            return line.above
        rows = line.above.splitlines(keepends=True)
        mine = 0
        for number, row in enumerate(rows, 1):
            inside = len(row) - len(row.lstrip(" \t"))
            if row.strip():
                if inside < max(len(indent), 1):
                    break
                mine = number
        self.lines[self.at] = replace(line, above="".join(rows[mine:]))
        return "".join(rows[:mine])

    def _statement(self, indent: str) -> Statement:
        found = [self._clause(indent)]
        while self.at < len(self.lines):
            line = self.lines[self.at]
            if not line.tokens or line.indent != indent:
                break
            decorated = found[-1].word == "@"
            if not decorated and line.tokens[0].text not in _FOLLOW:
                break
            found.append(self._clause(indent))
        return Statement(tuple(found))

    def _clause(self, indent: str) -> Clause:
        line = self.lines[self.at]
        self.at += 1
        head = line_items(line.tokens)
        clause = Clause(line.above, line.indent, head, line.tail)
        if first(head) not in _HEADERS:
            return clause
        colon = _colon(head)
        if colon is None:
            return clause
        if colon < len(head) - 1:
            return _inline(clause, colon)
        if self.at < len(self.lines):
            below = self.lines[self.at]
            if below.tokens and len(below.indent) > len(indent):
                return replace(clause, body=self.block(below.indent))
        raise Unreadable("a header has no block")


def _colon(head: Sequence[Item]) -> int | None:
    """Return where the colon of a header is."""
    lambdas = 0
    for at, one in enumerate(head):
        if isinstance(one, Token):
            lambdas += one.text == "lambda"
            if one.text == ":":
                if not lambdas:
                    return at
                lambdas -= 1
    return None


def _inline(clause: Clause, colon: int) -> Clause:
    """Return a clause whose block is on its own line."""
    rest = list(clause.head[colon + 1 :])
    before = rest[0].before
    rest[0] = without_before(rest[0])
    inner = Clause("", before, tuple(rest), clause.tail)
    body = Block((Statement((inner,)),))
    return replace(clause, head=clause.head[: colon + 1], tail="", body=body)


def without_before(item: Item, before: str = "") -> Item:
    """Return an item with something else before it."""
    if isinstance(item, Token):
        return Token(item.text, before, item.kind)
    return replace(item, open=Token(item.open.text, before, item.open.kind))


def line_items(tokens: Sequence[Token]) -> tuple[Item, ...]:
    """Return the items of a line, the names of an import as a group."""
    found, at = _items(tokens, 0, "")
    if at != len(tokens):
        raise Unreadable("a bracket closes that was not opened")
    word = found[0].text if isinstance(found[0], Token) else ""
    if word in ("from", "import"):
        return _import(found)
    return tuple(found)


def _items(tokens: Sequence[Token], at: int, close: str) -> tuple[list[Item], int]:
    """Return the items up to a closing bracket, and where that is."""
    found: list[Item] = []
    while at < len(tokens):
        token = tokens[at]
        if token.text in CLOSE and token.kind == "sign":
            if token.text != close:
                raise Unreadable("brackets do not pair")
            return found, at
        if token.text in OPEN and token.kind == "sign":
            group, at = _group(tokens, at, _kind(found, token))
            found.append(group)
        else:
            found.append(token)
        at += 1
    if close:
        raise Unreadable("a bracket is not closed")
    return found, at


def _kind(before: Sequence[Item], token: Token) -> str:
    """Say what a bracket is for, by what stands before it."""
    last = before[-1] if before else None
    operand = isinstance(last, Group) or (
        isinstance(last, Token)
        and (last.kind == "string" or (last.kind == "name" and last.text not in _WORDS))
    )
    if not operand:
        return token.text
    if token.text == "(":
        opening = [one.text for one in before[:2] if isinstance(one, Token)]
        if "class" in opening[:1] and len(before) == 2:
            return "bases"
        if "def" in opening[:2] and len(before) <= 4 and opening[0] in ("def", "async"):
            return "parameters"
        return "call"
    return "index" if token.text == "[" else token.text


def _group(tokens: Sequence[Token], at: int, kind: str) -> tuple[Group, int]:
    """Read a group; return where its closing bracket is."""
    opening = tokens[at]
    inner, end = _items(tokens, at + 1, _CLOSES[opening.text])
    return grouped(kind, opening, inner, tokens[end]), end


def grouped(kind: str, opening: Token, inner: Sequence[Item], close: Token) -> Group:
    """Return a group of items, cut at their commas; comments go to the element they are beside."""
    elements: list[Element] = []
    opened = ""
    part: list[Item] = []
    lead = ""

    def beside(before: str) -> str:
        """Give a comment on the line of the last comma to what is before it."""
        nonlocal opened
        line = before.split("\n", 1)[0]
        if "#" not in line:
            return before
        line = line.removesuffix("\r")
        if elements:
            elements[-1] = replace(elements[-1], tail=line)
        else:
            opened = line
        return before[len(line) :]

    for item in inner:
        if isinstance(item, Token) and item.text == "," and item.kind == "sign":
            elements.append(Element(lead, tuple(part), item.before, True))
            part, lead = [], ""
        elif part:
            part.append(item)
        else:
            lead = beside(item.before)
            part = [without_before(item)]
    if part:
        elements.append(Element(lead, tuple(part)))
    close = Token(close.text, beside(close.before), close.kind)
    return Group(kind, opening, opened, tuple(elements), close)


def _import(found: list[Item]) -> tuple[Item, ...]:
    """Return an import line with its names as a group."""
    at = next(
        (n for n, one in enumerate(found) if isinstance(one, Token) and one.text == "import"), None
    )
    if at is None or at + 1 == len(found):
        return tuple(found)
    rest = found[at + 1 :]
    if any(isinstance(one, Token) and one.text == ";" for one in rest):
        return tuple(found)
    if isinstance(rest[0], Group):
        return (*found[: at + 1], replace(rest[0], kind="names"))
    opening = Token("", rest[0].before, "sign")
    rest[0] = without_before(rest[0])
    return (*found[: at + 1], grouped("names", opening, rest, Token("", "", "sign")))
