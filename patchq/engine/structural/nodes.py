"""A Python text as blocks of statements, and statements as words in brackets.

Every node keeps its own spaces and comments, so that `text` gives back what was
read. `norm` is what is compared: it leaves out layout, comments, the kind of quotes,
trailing commas and parentheses around a whole expression.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from patchq.engine.structural.tokens import Token, kept

COMMENT = re.compile(r"#[^\r\n]*")
_LONG = 60
# Words after which an expression begins.
_BEFORE = frozenset("= return in if elif while assert += -= yield not and or".split())


@dataclass(frozen=True)
class Element:
    """What stands between two commas: `lead` before it, `tail` after its comma."""

    lead: str
    items: tuple[Item, ...]
    gap: str = ""
    comma: bool = False
    tail: str = ""

    @kept
    def text(self) -> str:
        """The element as it was read."""
        return self.lead + self.core + self.gap + ("," if self.comma else "") + self.tail

    @kept
    def core(self) -> str:
        """The words alone."""
        return text(self.items)

    @kept
    def norm(self) -> str:
        """The element as it is compared."""
        return norm(self.items)

    @kept
    def comments(self) -> tuple[str, ...]:
        """The comments in it and beside it."""
        return (
            *COMMENT.findall(self.lead),
            *comments(self.items),
            *COMMENT.findall(self.gap + self.tail),
        )


@dataclass(frozen=True)
class Group:
    """Brackets and what is in them; `kind` says what they are for.

    The names of an import are a group too, whose brackets may be empty. `opened` is
    a comment behind the opening bracket.
    """

    kind: str
    open: Token
    opened: str
    elements: tuple[Element, ...]
    close: Token

    @kept
    def text(self) -> str:
        """The group as it was read, but for what stands before it."""
        inner = "".join(one.text for one in self.elements)
        return self.open.text + self.opened + inner + self.close.before + self.close.text

    @property
    def before(self) -> str:
        """What stands before the opening bracket."""
        return self.open.before

    @kept
    def norm(self) -> str:
        """The group as it is compared."""
        parts = [one.norm for one in self.elements]
        single = self.kind == "(" and len(parts) == 1 and self.elements[0].comma
        opened = "(" if self.kind == "names" else self.open.text
        return "\x1f".join([opened, "\x1f,\x1f".join(parts), ",)" if single else ")"])

    @kept
    def comments(self) -> tuple[str, ...]:
        """The comments in the brackets."""
        inner = [comment for one in self.elements for comment in one.comments]
        return (*COMMENT.findall(self.opened), *inner, *COMMENT.findall(self.close.before))


Item = Token | Group


@dataclass(frozen=True)
class Clause:
    """A logical line, and the block under it: a simple statement, a header, a decorator."""

    above: str
    indent: str
    head: tuple[Item, ...]
    tail: str
    body: Block | None = None

    @kept
    def text(self) -> str:
        """The clause as it was read."""
        own = self.above + self.indent + text(self.head) + self.tail
        return own + (self.body.text if self.body else "")

    @kept
    def header(self) -> str:
        """The line itself as it is compared."""
        return norm(self.head)

    @kept
    def norm(self) -> str:
        """The clause as it is compared."""
        return self.header + (f"\x1e{self.body.norm}\x1d" if self.body else "")

    @kept
    def comments(self) -> tuple[str, ...]:
        """Every comment in it, the ones above it too."""
        own = (
            *COMMENT.findall(self.above),
            *comments(self.head),
            *COMMENT.findall(self.tail),
        )
        return own + (self.body.comments if self.body else ())

    @property
    def word(self) -> str:
        """The first word of the line."""
        return first(self.head)


@dataclass(frozen=True)
class Statement:
    """A statement: one clause, or those of `if`, `try` and the like, or decorators and a def."""

    clauses: tuple[Clause, ...]

    @kept
    def text(self) -> str:
        """The statement as it was read."""
        return "".join(one.text for one in self.clauses)

    @kept
    def norm(self) -> str:
        """The statement as it is compared."""
        return "\x1c".join(one.norm for one in self.clauses)

    @kept
    def comments(self) -> tuple[str, ...]:
        """Every comment in it."""
        return tuple(comment for one in self.clauses for comment in one.comments)

    @property
    def indent(self) -> str:
        """What stands before its first line."""
        return self.clauses[0].indent

    @kept
    def name(self) -> str:
        """The name that a def or class gives, else ""."""
        return defined(self.clauses[-1].head)[1]

    @kept
    def imports(self) -> str:
        """The module that an import line imports from, "import" for a plain one, else ""."""
        head = self.clauses[0].head
        if not isinstance(head[-1], Group) or head[-1].kind != "names":
            return ""
        return norm(head[1:-2]) or "import"


@dataclass(frozen=True)
class Block:
    """Statements, the comments below the last of them, and the header of a module."""

    statements: tuple[Statement, ...]
    end: str = ""
    start: str = ""

    @kept
    def text(self) -> str:
        """The block as it was read."""
        return self.start + "".join(one.text for one in self.statements) + self.end

    @kept
    def norm(self) -> str:
        """The block as it is compared."""
        return "\x1e".join(one.norm for one in self.statements)

    @kept
    def comments(self) -> tuple[str, ...]:
        """Every comment in it."""
        inner = [comment for one in self.statements for comment in one.comments]
        return (*COMMENT.findall(self.start), *inner, *COMMENT.findall(self.end))


Node = Element | Clause | Statement | Block


def text(items: Iterable[Item]) -> str:
    """Return the text of items, with what stands before each."""
    return "".join(one.before + one.text for one in items)


def comments(items: Iterable[Item]) -> tuple[str, ...]:
    """Return the comments between and in items."""
    found: list[str] = []
    for one in items:
        found += COMMENT.findall(one.before)
        if isinstance(one, Group):
            found += one.comments
    return tuple(found)


def norm(items: Sequence[Item]) -> str:
    """Return items as they are compared."""
    return "\x1f".join(keys(items))


def keys(items: Sequence[Item]) -> list[str]:
    """Return the items, each as it is compared; adjacent plain strings as one."""
    found: list[str] = []
    for at, one in enumerate(items):
        if isinstance(one, Group) and _around(items, at):
            found += keys(one.elements[0].items)
        elif isinstance(one, Token) and one.kind == "string" and found and _joined(found, one):
            found[-1] = found[-1][:-1] + one.norm[1:]
        else:
            found.append(one.norm)
    return found


def _joined(found: list[str], one: Token) -> bool:
    plain = one.norm.startswith('"') and not one.norm.startswith('""')
    return plain and found[-1].startswith('"') and not found[-1].startswith('""')


def _around(items: Sequence[Item], at: int) -> bool:
    """Return True for parentheses around a whole expression."""
    one = items[at]
    assert isinstance(one, Group)
    if one.kind != "(" or len(one.elements) != 1 or one.elements[0].comma:
        return False
    before = items[at - 1] if at else None
    after = items[at + 1] if at + 1 < len(items) else None
    begins = before is None or (isinstance(before, Token) and before.text in _BEFORE)
    ends = after is None or (isinstance(after, Token) and after.text in (":", "and", "or"))
    inner = one.elements[0].items
    if not inner or any(isinstance(x, Token) and x.text in ("for", "yield", ":=") for x in inner):
        return False
    loose = any(isinstance(x, Token) and x.text in ("and", "or", "if", "lambda") for x in inner)
    tight = (isinstance(before, Token) and before.text in ("not", "and", "or")) or (
        isinstance(after, Token) and after.text in ("and", "or")
    )
    return begins and ends and not (loose and tight)


def first(items: Sequence[Item]) -> str:
    """Return the first word of a line, without ``async``."""
    for one in items:
        if not isinstance(one, Token):
            return one.open.text
        if one.text != "async":
            return one.text
    return ""


def defined(head: Sequence[Item]) -> tuple[str, str]:
    """Return ``def`` or ``class`` and the name, or two empty strings."""
    at = 1 if isinstance(head[0], Token) and head[0].text == "async" else 0
    if len(head) > at + 1:
        word, name = head[at], head[at + 1]
        if isinstance(word, Token) and isinstance(name, Token) and word.text in ("def", "class"):
            return word.text, name.text
    return "", ""


def line(one: Clause) -> str:
    """Return a line for a message."""
    said = " ".join(text(one.head).split())
    return said if len(said) <= _LONG else said[: _LONG - 3] + "..."


def short(one: Statement) -> str:
    """Return a statement for a message: its line, or that of its def."""
    return line(one.clauses[-1 if one.name else 0])
