r"""Mails that hold patches: bytes of a mailbox to messages, decoded.

What begins a mail is git-mailsplit(1)'s rule, what of it is the message
git-mailinfo(1)'s: the bracketed words of a subject go, lines ``From:``, ``Subject:`` and
``Date:`` at the top of the body count for the mail's own, and what stands between ``---`` and
the first diff is no part of the message. Diffs stay bytes, whatever the mail's charset.
Carriage returns before newlines are the mail's, never the patch's.
"""

from __future__ import annotations

import email
import email.errors
import email.header
import email.policy
import re
from collections.abc import Iterator
from dataclasses import dataclass
from email.message import Message

from patchq.engine import lines

_FIELD = re.compile(rb"[A-Za-z][A-Za-z0-9-]*:|[ \t]")
_MAIL = re.compile(rb"(?:Message-Id|MIME-Version|Received|Return-Path):", re.IGNORECASE)
_QUOTED = re.compile(rb">+From ")
_NUMBER = re.compile(r"\[[^\]]*?(\d+)/(\d+)[^\]]*\]")
_PREFIX = re.compile(r"\A(?:re:|[\s:]|\[[^\]]*\])+", re.IGNORECASE)
_IN_BODY = re.compile(r"(From|Subject|Date): ?(.*)", re.IGNORECASE)


# Of a subject the number is looked for in so many characters.
_LONGEST = 200


@dataclass(frozen=True, slots=True)
class Mail:
    """One mail: who, when, what about, the message, and the lines from ``---`` or a diff on.

    `number` is that of ``[PATCH 2/5]`` with how many there are, None where there is none.
    """

    sender: str
    date: str
    subject: str
    message: str
    rows: tuple[bytes, ...]
    number: tuple[int, int] | None = None

    @property
    def header(self) -> bytes:
        """The mail as the header of a patch: three fields, an empty line, the message."""
        fields = ("From", self.sender), ("Date", self.date), ("Subject", self.subject)
        head = "".join(f"{name}: {value}\n" for name, value in fields if value)
        return lines.encode(f"{head}\n{self.message}\n\n" if self.message else f"{head}\n")


def is_mail(data: bytes) -> bool:
    """Return whether a text is a mailbox, or one mail as a mail program saves it."""
    rows = lines.split(data.lstrip(b"\r\n"))
    if not rows or _begins(rows[0]):
        return bool(rows)
    head = []
    for row in rows:
        if not row.strip() or not _FIELD.match(row):
            break
        head.append(row)
    names = {row.partition(b":")[0].lower() for row in head}
    return {b"from", b"subject"} <= names and any(_MAIL.match(row) for row in head)


def mails(data: bytes) -> tuple[Mail, ...]:
    """Return the mails of a mailbox: by their numbers where all of one series have one.

    Example:
        >>> text = b"From x Mon Sep 17 00:00:00 2001\\nFrom: A\\nSubject: [PATCH] b\\n\\nc\\n"
        >>> (one,) = mails(text)
        >>> (one.sender, one.subject, one.message)
        ('A', 'b', 'c')
    """
    found = [_mail(rows) for rows in _split(data)]
    numbers = [one.number for one in found if one.number is not None]
    once = len(set(numbers)) == len(found) and len({total for _, total in numbers}) == 1
    return tuple(sorted(found, key=lambda one: one.number or (0, 0)) if once else found)


def _split(data: bytes) -> Iterator[list[bytes]]:
    """Yield the lines of each mail, without the line that begins it."""
    current: list[bytes] = []
    for row in lines.split(data.lstrip(b"\r\n")):
        row = row[:-2] + b"\n" if row.endswith(b"\r\n") else row
        if not _begins(row):
            current.append(row)
        elif current:
            yield current
            current = []
    if current:
        yield current


def _begins(row: bytes) -> bool:
    """Return whether a mail begins here: builtin/mailsplit.c, ``is_from_line``."""
    if not row.startswith(b"From ") or len(row) < 20:
        return False
    colon = row.rfind(b":", 5, len(row) - 2)
    digits = [row[at : at + 1] for at in (colon - 4, colon - 2, colon - 1, colon + 1, colon + 2)]
    year = re.match(rb" *(\d+)", row[colon + 3 :])
    return colon > 9 and b"".join(digits).isdigit() and year is not None and int(year[1]) > 90


def _mail(rows: list[bytes]) -> Mail:
    """Return one mail, decoded."""
    whole = email.message_from_bytes(b"".join(rows), policy=email.policy.compat32)
    texts = [_text(part, rows) for part in _parts(whole)]
    charset = next((name for _, name in texts), "utf-8")
    body = [row for data, _ in texts for row in lines.split(data)]
    at = next((at for at, row in enumerate(body) if _is_patch(row)), len(body))
    words = "".join(_decoded(row, charset) for row in body[:at]).split("\n")
    fields = {name: _field(whole, name) for name in ("From", "Date", "Subject")}
    message = _taken(fields, words)
    number = _NUMBER.search(fields["Subject"][:_LONGEST])
    return Mail(
        fields["From"],
        fields["Date"],
        _clean(fields["Subject"]),
        "\n".join(line.rstrip() for line in message).strip("\n"),
        tuple(body[at:]),
        (int(number[1]), int(number[2])) if number else None,
    )


def _parts(whole: Message) -> list[Message]:
    """Return the parts of a mail that may have a patch in them: what is text, and not HTML."""
    parts = [part for part in whole.walk() if not part.is_multipart()]
    if len(parts) == 1:
        return parts
    return [
        part
        for part in parts
        if (part.get_content_maintype() == "text" and part.get_content_subtype() != "html")
        or (part.get_filename() or "").endswith((".patch", ".diff"))
    ]


def _text(part: Message, rows: list[bytes]) -> tuple[bytes, str]:
    """Return a part's bytes as they were sent, and its charset."""
    coded = str(part.get("Content-Transfer-Encoding", "")).strip().lower()
    if coded in ("base64", "quoted-printable", "x-uuencode") or "Content-Type" in part:
        payload = part.get_payload(decode=True)
        data = payload if isinstance(payload, bytes) else b""
    else:  # as it is: the library would cut lines elsewhere
        blank = next((at for at, row in enumerate(rows) if not row.strip()), len(rows))
        data = b"".join(rows[blank + 1 :])
    rows = [row[1:] if _QUOTED.match(row) else row for row in lines.split(data)]
    plain = b"".join(row[:-2] + b"\n" if row.endswith(b"\r\n") else row for row in rows)
    return plain, part.get_content_charset() or "utf-8"


def _decoded(row: bytes, charset: str) -> str:
    """Return a line of a message; bytes that are not in its charset stay what they are."""
    try:
        return row.decode(charset)
    except (ValueError, LookupError):  # not its charset, or none at all
        return lines.decode(row)


def _field(whole: Message, name: str) -> str:
    """Return a field of the mail's header in one line, its encoded words decoded."""
    value = whole.get(name, "")
    words = []
    try:
        chunks = email.header.decode_header(value)
    except email.errors.HeaderParseError:  # not the base64 that it says to be
        chunks = [(str(value), None)]
    for chunk, charset in chunks:
        if isinstance(chunk, bytes):
            chunk = _decoded(chunk, charset if charset and charset != "unknown-8bit" else "utf-8")
        words.append(chunk)
    return " ".join("".join(words).split())


def _taken(fields: dict[str, str], words: list[str]) -> list[str]:
    """Take the fields at the top of a body for the mail's own; return the rest of the body."""
    at = next((at for at, line in enumerate(words) if line.strip()), len(words))
    while at < len(words) and (match := _IN_BODY.fullmatch(words[at])):
        fields[match[1].capitalize()] = match[2].strip()
        at += 1
    return words[at:]


def _is_patch(row: bytes) -> bool:
    """Return whether the message ends here: mailinfo.c, ``patchbreak``."""
    if row.startswith((b"diff -", b"Index: ")):
        return True
    return row.startswith(b"---") and (not row[3:].strip() or bool(re.match(rb"--- \S", row)))


def _clean(subject: str) -> str:
    """Return a subject without ``Re:`` and bracketed words: mailinfo.c, ``cleanup_subject``."""
    return _PREFIX.sub("", subject).strip()
