"""DEP-3: what the header of a patch is to tell, and what is wrong with one that tells less.

The rules are those of https://dep-team.pages.debian.net/deps/dep3/ (accepted, 2009-09),
"Standard fields": Description, and Origin or an Author, are required.
"""

from __future__ import annotations

import datetime
import difflib
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

from patchq.engine import lines

_FIELD = re.compile(r"([A-Za-z][A-Za-z0-9-]*):(?:[ \t]+(.*)|)$")
_KEYWORDS = ("upstream", "backport", "vendor", "other")
_NAMES = (
    *("Description", "Subject", "Origin", "Author", "From", "Bug", "Forwarded", "Reviewed-by"),
    *("Acked-by", "Last-Update", "Applied-Upstream"),
)
# How people write "no" and "not-needed"; any other value says that it was forwarded.
_DENIED = ("none", "false", "n/a", "na", "not needed", "not_needed", "never", "nope", "n")
_MAIL = re.compile(r"From [0-9a-f]{7,64} ")
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://\S|mailto:\S")


@dataclass(frozen=True, slots=True)
class Flaw:
    """What is wrong in a header, at which line (from 1), and what to write instead."""

    line: int
    what: str
    why: str
    mend: str

    def to_json(self) -> dict[str, object]:
        """Return the flaw as ``--json`` shows it."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class _Field:
    line: int
    name: str
    value: str

    @property
    def first(self) -> str:
        return self.value.split("\n")[0].strip()


def template(author: str, today: datetime.date) -> bytes:
    """Return what a header without text can be filled in from; `flaws` finds what is not.

    Example:
        >>> template("A <a@b.c>", datetime.date(2026, 1, 2)).decode().split("\\n")[3]
        'Author: A <a@b.c>'
    """
    text = (
        "Description: <what the patch does, in one line>\n"
        " <why, and how: further lines begin with a blank>\n"
        "Origin: <upstream|backport|vendor|other>, <URL; or take the line out>\n"
        f"Author: {author}\n"
        "Bug: <URL of the report; or take the line out>\n"
        "Forwarded: <no|not-needed|URL>\n"
        f"Last-Update: {today.isoformat()}\n"
        "---\n"
    )
    return lines.encode(text)


def flaws(header: bytes) -> tuple[Flaw, ...]:
    r"""Return what a header lacks or says in a form that is not DEP-3's, top to bottom.

    Example:
        >>> [one.what for one in flaws(b"Description: x\nLast-Update: today\n")]
        ['no Origin, and no Author', 'Last-Update: today']
    """
    rows = [line.removesuffix("\r") for line in lines.decode(header).split("\n")]
    fields, found = _fields(rows)
    found += _missing(fields)
    for field in fields:
        found += _field(field)
    return tuple(sorted(found, key=lambda one: one.line))


def _fields(rows: Sequence[str]) -> tuple[list[_Field], list[Flaw]]:
    """Return the fields of a header; free text may follow an empty line."""
    fields: list[_Field] = []
    found: list[Flaw] = []
    fresh, free = True, False
    for number, text in enumerate(rows, 1):
        match = _FIELD.match(text) if fresh and not free else None
        if text == "---":
            break
        if match:
            fields.append(_Field(number, match[1], match[2] or ""))
        elif not text.strip():
            fresh, free = True, False
        elif fields and text[0] in " \t" and not free:
            last = fields[-1]
            fields[-1] = _Field(last.line, last.name, f"{last.value}\n{text.strip()}")
        elif number > 1 and rows[number - 2].strip() and not free and fields:
            why = (
                "a field goes on in lines that begin with a blank; free text follows an empty line"
            )
            found.append(Flaw(number, f"no field: {text}", why, f"write ' {text}'"))
        elif not _MAIL.match(text):
            free = True
    return fields, found


def _missing(fields: Sequence[_Field]) -> Iterator[Flaw]:
    names = {field.name.lower() for field in fields}
    if not names & {"description", "subject"}:
        why = "DEP-3 requires Description, or Subject: what the patch does, and why"
        yield Flaw(1, "no Description", why, "write Description: what it does, in one line")
    if not names & {"origin", "author", "from"}:
        why = "DEP-3 requires Origin, except where there is an Author"
        mend = "write Author: Name <mail>, or Origin: upstream, URL"
        yield Flaw(1, "no Origin, and no Author", why, mend)


def _field(field: _Field) -> Iterator[Flaw]:
    """Yield what is wrong with one field."""
    name, value = field.name.lower(), field.value.strip()
    said = f"{field.name}: {field.first}".rstrip()
    if not value:
        yield Flaw(field.line, said, "it has no value", "give it one, or take the line out")
    elif re.match(r"<[^<>@]*>", field.first) or re.search(r"<[^<>@]*[ |;][^<>@]*>", field.first):
        why = "it is still as the template has it"
        yield Flaw(field.line, said, why, "fill it in, or take the line out")
    elif name in ("description", "subject"):
        if not field.first:
            why = "its first line is the short description"
            yield Flaw(field.line, said, why, f"write it behind '{field.name}:'")
    elif name == "origin":
        yield from _origin(field, said)
    elif name == "bug" or name.startswith("bug-"):
        if not _URL.match(value):
            yield Flaw(
                field.line, said, "it must be the URL of a report", f"{field.name}: https://..."
            )
    elif name == "forwarded":
        if value.lower() in _DENIED or (value.lower() in ("no", "not-needed")) > (
            value in ("no", "not-needed")
        ):
            why = "all but 'no' and 'not-needed' says that it was forwarded"
            yield Flaw(field.line, said, why, "write no, not-needed, or the URL")
    elif name == "last-update":
        if not _is_date(value):
            why = "it must be a date as YYYY-MM-DD"
            yield Flaw(field.line, said, why, "Last-Update: 2026-01-31")
    elif near := _nearest(field.name):
        yield Flaw(field.line, said, "DEP-3 has no such field", f"write {near}:")


def _origin(field: _Field, said: str) -> Iterator[Flaw]:
    """Origin is a URL or a text, with one of four words and a comma before it."""
    word, comma, rest = field.first.partition(",")
    mend = "Origin: upstream, URL (or backport, vendor, other)"
    if comma and word.isalpha() and word not in _KEYWORDS:
        near = difflib.get_close_matches(word.lower(), _KEYWORDS, 1)
        why = f"the word before the comma is one of {', '.join(_KEYWORDS)}"
        yield Flaw(field.line, said, why, f"write {near[0]}," if near else mend)
    elif word.strip().lower() in _KEYWORDS and not rest.strip():
        yield Flaw(field.line, said, "it does not say where it comes from", mend)


def _is_date(value: str) -> bool:
    if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", value):
        return False
    try:
        datetime.date.fromisoformat(value)
    except ValueError:
        return False
    return True


def _nearest(name: str) -> str | None:
    """Return the field that a name nearly is; None for one that is DEP-3's, or nobody's."""
    lower = {one.lower(): one for one in _NAMES}
    if name.lower() in lower:
        return None
    near = difflib.get_close_matches(name.lower(), lower, 1, 0.85)
    return lower[near[0]] if near else None
