r"""The header of a patch as the message of a commit, and back.

The short description is the subject, the long one and free text are the body; the other
fields of DEP-3 follow as git trailers. Pure. What was not edited is not rewritten: `same`
tells whether a message says what a header says, so that the header can stay byte for byte.
"""

from __future__ import annotations

import calendar
import email.utils
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from patchq.engine import lines

NAME = "Patchq-Patch"
_FIELD = re.compile(r"([A-Za-z][A-Za-z0-9-]*):(?:[ \t]+(.*)|)$")
_MAIL = re.compile(r"From [0-9a-f]{7,64} ")
# DEP-3 has these; what else stands at the end of a message is text, as Signed-off-by is.
_KNOWN = ("origin", "forwarded", "reviewed-by", "acked-by", "last-update", "applied-upstream")


@dataclass(frozen=True, slots=True)
class Message:
    """What a header says: who, when, what in a line, why, and its other fields in order.

    `mail`: it is in the form of git's mails; `ruled`: it ends in ``---``.
    """

    author: str
    date: str
    subject: str
    body: str
    fields: tuple[tuple[str, str], ...] = ()
    mail: bool = False
    ruled: bool = False

    @property
    def text(self) -> str:
        """Subject, body and fields, as the message of a commit has them."""
        fields = "\n".join(_field(name, value) for name, value in self.fields)
        parts = (self.subject, self.body, fields)
        return "\n\n".join(part for part in parts if part) + "\n"

    def commit(self, name: str) -> bytes:
        """Return the message of a commit that is patch `name`."""
        joint = "" if self.fields else "\n"
        return lines.encode(f"{self.text}{joint}{NAME}: {name}\n")

    @property
    def raw_date(self) -> str | None:
        """When it was made, as git has it: seconds and time zone; None where nothing says it."""
        when = email.utils.parsedate_tz(self.date) if self.date else None
        if when is None:
            return None
        zone = when[9] or 0
        try:
            seconds = calendar.timegm(when[:9]) - zone
        except (ValueError, OverflowError):
            return None
        hours, minutes = divmod(abs(zone) // 60, 60)
        return (
            f"{seconds} {'-' if zone < 0 else '+'}{hours:02}{minutes:02}" if seconds > 0 else None
        )


def of(header: bytes, stem: str) -> Message:
    r"""Return what a header says; `stem` is the subject of one that says nothing.

    Example:
        >>> of(b"Description: a\n b\nAuthor: A <a@b.c>\nBug: u\n\nc\n", "x").text
        'a\n\nb\n\nc\n\nBug: u\n'
    """
    rows = [line.removesuffix("\r") for line in lines.decode(header).split("\n")]
    ruled = "---" in rows
    rows = rows[: rows.index("---")] if ruled else rows
    first = next((at for at, row in enumerate(rows) if row.strip()), len(rows))
    mail = first < len(rows) and bool(_MAIL.match(rows[first]))
    fields, at = _fields(rows, first + mail)
    said = {name.lower(): value for name, value in reversed(fields)}
    words = said.get("description", said.get("subject", ""))
    words = "\n\n".join(part for part in (words, _squeezed(rows[at:])) if part.strip())
    subject, _, body = words.strip().partition("\n")
    mail = mail or bool(fields and fields[0][0].lower() in ("from", "subject"))
    taken = ("description", "subject", "author", "from", "date")
    return Message(
        said.get("author", said.get("from", "")).split("\n")[0],
        said.get("date", ""),
        _unbracketed(subject) if mail else subject or stem,
        body.strip("\n"),
        tuple(one for one in fields if one[0].lower() not in taken),
        mail,
        ruled,
    )


def read(text: bytes, author: str, date: str, old: Message | None) -> Message:
    """Return what the message of a commit says, in the form of the header that it had."""
    rows = [row.rstrip() for row in lines.decode(text).split("\n")]
    rows = [row for row in rows if not row.startswith(f"{NAME}:")]
    while rows and not rows[-1]:
        rows.pop()
    kept = {name.lower() for name, _ in old.fields} if old else set()
    start = len(rows)
    fields: list[tuple[str, str]] = []
    while start and rows[start - 1]:
        start -= 1
    found, end = _fields(rows, start) if start else ([], 0)
    if found and end == len(rows) and all(_is_known(name, kept) for name, _ in found):
        fields, rows = found, rows[:start]
    subject, _, body = "\n".join(rows).strip("\n").partition("\n")
    form = old or Message("", "", "", "")
    return replace(
        form,
        author=author,
        date=date,
        subject=subject,
        body=body.strip("\n"),
        fields=tuple(fields),
    )


def header(message: Message) -> bytes:
    r"""Return the header that says it: DEP-3's form, or that of git's mails.

    Example:
        >>> header(Message("A <a@b.c>", "", "a", "b", (("Bug", "u"),)))
        b'Description: a\n b\nAuthor: A <a@b.c>\nBug: u\n\n'
    """
    end = "---\n" if message.ruled else "\n"
    fields = "".join(f"{_field(name, value)}\n" for name, value in message.fields)
    if message.mail:
        head = f"From: {message.author}\n" if message.author else ""
        head += f"Date: {message.date}\n" if message.date else ""
        body = f"\n{message.body}\n" if message.body else ""
        return lines.encode(f"{head}Subject: {message.subject}\n{fields}{body}{end}")
    words = "\n".join(part for part in (message.subject, message.body) if part)
    author = f"Author: {message.author}\n" if message.author else ""
    return lines.encode(f"{_field('Description', words)}\n{author}{fields}{end}")


def names(text: bytes) -> tuple[str, ...]:
    """Return the patches that a commit says it is; two were squashed where there are two."""
    pattern = rf"^{NAME}:[ \t]*(\S+)[ \t]*$"
    return tuple(re.findall(pattern, lines.decode(text), re.MULTILINE))


def same(one: bytes, other: bytes) -> bool:
    """Return whether two messages say the same but for what git strips on an edit."""
    return _cleaned(one) == _cleaned(other)


def _cleaned(text: bytes) -> str:
    rows = [row.rstrip() for row in lines.decode(text).split("\n")]
    return _squeezed([row for row in rows if not row.startswith("#")])


def _squeezed(rows: Iterable[str]) -> str:
    """Return lines without blank ones at the ends, and with one at most between others."""
    return re.sub(r"\n{3,}", "\n\n", "\n".join(row.rstrip() for row in rows).strip("\n"))


def _fields(rows: list[str], at: int) -> tuple[list[tuple[str, str]], int]:
    """Return the fields of a paragraph, and where it ends; none where it is no fields."""
    out: list[tuple[str, str]] = []
    start = at
    while at < len(rows) and rows[at].strip():
        match = _FIELD.match(rows[at])
        if match:
            out.append((match[1], match[2] or ""))
        elif out and rows[at][0] in " \t":
            more = "" if rows[at].strip() == "." else rows[at][1:].rstrip()
            out[-1] = (out[-1][0], f"{out[-1][1]}\n{more}")
        else:
            return [], start
        at += 1
    return [(name, value.strip("\n")) for name, value in out], at


def _field(name: str, value: str) -> str:
    first, *more = value.split("\n")
    return "\n".join([f"{name}: {first}", *(f" {row or '.'}" for row in more)])


def _is_known(name: str, kept: set[str]) -> bool:
    lower = name.lower()
    return lower in kept or lower in _KNOWN or lower == "bug" or lower.startswith("bug-")


def _unbracketed(subject: str) -> str:
    """Return a mail's subject without what stands in brackets before it, as git am has it."""
    return re.sub(r"\A(?:\s*\[[^\]]*\])+\s*", "", subject)
