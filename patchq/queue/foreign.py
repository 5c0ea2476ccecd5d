r"""Patches from elsewhere: bytes of a file to patches with a name and a header.

Read are a plain diff, mails (`patchq.queue.mailbox`: git-format-patch(1), the ``.patch`` of a
pull request), and what git-show(1) and git-log(1) print (`patchq.queue.commits`). The header
of a plain diff and of a commit is kept byte for byte, that of a mail is decoded. How they go
on a tree is `patchq.queue.refitting`'s.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from patchq.engine import cuts, lines
from patchq.engine.cuts import Cut
from patchq.errors import UsageError
from patchq.queue import commits, mailbox, naming

RETURNS = "its lines ended in CR LF; the carriage returns are left out"
_PAGE = re.compile(rb"\s*<(?:!doctype|html)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Given:
    """One patch as it was found: its name, header, lines from the first diff's on, its files.

    `source` names it in messages; `kept` is how many of the lines are the patch's own.
    """

    name: str
    header: bytes
    rows: tuple[bytes, ...]
    cuts: tuple[Cut, ...]
    source: str
    kept: int


@dataclass(frozen=True, slots=True)
class Found:
    """The patches of a file, in order, and what is to be said of how they were read."""

    source: str
    patches: tuple[Given, ...]
    notes: tuple[str, ...] = ()


def read(data: bytes, *, source: str, name: str | None = None) -> Found:
    """Return the patches in a file's bytes; `source` is the file's name, ``-`` for stdin.

    `name` is the patch's, if it has one already.

    Raises:
        UsageError: there is no diff in it, or no name for it.
        PatchFormatError: it cannot be read as a patch.
    """
    found = unnamed(data, source)
    return replace(found, patches=_named(found.patches, source, name))


def unnamed(data: bytes, source: str) -> Found:
    """Return the patches in a file's bytes, of which a plain diff has no name.

    Raises:
        UsageError: there is no diff in it.
        PatchFormatError: it cannot be read as a patch.
    """
    if mailbox.is_mail(data):
        found = _mails(data, source)
    else:
        rows, notes = _without_returns(lines.split(data))
        if commits.is_commits(rows):
            found = _commits(rows, source, notes)
        else:
            one = _given("", rows, source)
            found = Found(source, (one,) if one else (), notes)
    if not found.patches:
        raise _nothing(data, source)
    return found


def _mails(data: bytes, source: str) -> Found:
    mails = mailbox.mails(data)
    patches, notes = [], []
    for number, mail in enumerate(mails, 1):
        label = source if len(mails) == 1 else f"{source}, mail {number}"
        one = _given(naming.from_subject(mail.subject), mail.rows, label)
        if one is not None:
            last = one.cuts[-1].last
            patches.append(replace(one, header=mail.header, kept=last))
        else:
            notes.append(f"{label} has no diff: {mail.subject}")
    return Found(source, tuple(patches), tuple(notes))


def _commits(rows: list[bytes], source: str, notes: tuple[str, ...]) -> Found:
    found, turned = commits.commits(rows)
    patches = []
    for one in found:
        given = _given(naming.from_subject(one.subject), one.rows, source)
        if given is not None:
            last = given.cuts[-1].last
            patches.append(replace(given, kept=last))
    if turned:
        notes += (f"{source} has the newest commit first; the oldest becomes the first patch",)
    return Found(source, tuple(patches), notes)


def _given(name: str, rows: Sequence[bytes], source: str) -> Given | None:
    """Return the patch in some lines, None if there is no diff in them."""
    found = cuts.cut(rows, source=source)
    if not found:
        return None
    header = b"".join(rows[: found[0].start])
    return Given(name, header, tuple(rows), found, source, len(rows))


def _without_returns(rows: list[bytes]) -> tuple[list[bytes], tuple[str, ...]]:
    """Return lines without the CR before their newlines, where all have one."""
    whole = [row for row in rows if row.endswith(b"\n")]
    if not whole or not all(row.endswith(b"\r\n") for row in whole):
        return rows, ()
    return [row.replace(b"\r\n", b"\n") for row in rows], (RETURNS,)


def _named(patches: Sequence[Given], source: str, name: str | None) -> tuple[Given, ...]:
    """Return patches with the names that they are stored under."""
    if name is not None and len(patches) > 1:
        raise UsageError(
            "Option `-P' can only be used when importing a single patch",
            why=f"{source} has {len(patches)} patches",
            mend=f"patchq import {source}",
        )
    names = [one.name for one in patches]
    if len(patches) == 1 and source != "-" and not (names[0] and naming.says_nothing(source)):
        names = [naming.from_file(source) if names[0] else source.rpartition("/")[2]]
    if name is not None:
        names = [name]
    elif source == "-" and not names[0] and len(names) == 1:
        raise UsageError(
            "the patch on stdin has no name",
            why="a plain diff does not say what it is for",
            mend="patchq import -P NAME.patch -",
        )
    every = naming.distinct(names)
    return tuple(replace(one, name=name) for one, name in zip(patches, every, strict=True))


def _nothing(data: bytes, source: str) -> UsageError:
    if _PAGE.match(data):
        why = "it is a web page; a pull request's patch is at its address with .patch behind it"
    elif not data.strip():
        why = "it is empty"
    else:
        why = "no line of it begins a unified diff"
    return UsageError(f"{source} has no patch in it", why=why, mend="give it the text of a diff")
