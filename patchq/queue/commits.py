"""What git-show(1) and git-log(1) ``-p`` print: commits, each with its diff.

The lines above a diff are kept as they are: they are the header of the patch. git-log
lists the newest commit first, patches are applied oldest first.
"""

from __future__ import annotations

import email.utils
import re
from collections.abc import Sequence
from dataclasses import dataclass

from patchq.engine import lines

_COMMIT = re.compile(rb"commit [0-9a-f]{7,64}(?: \(.*\))?\r?\n?$")
_FIELD = re.compile(rb"[A-Z][A-Za-z]*:? ")


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit: its lines, and of them the subject."""

    subject: str
    rows: tuple[bytes, ...]
    date: float | None = None


def is_commits(rows: Sequence[bytes]) -> bool:
    """Return whether a text is what git-show or git-log printed."""
    first = next((at for at, row in enumerate(rows) if row.strip()), len(rows))
    return _begins(rows, first)


def commits(rows: Sequence[bytes]) -> tuple[tuple[Commit, ...], bool]:
    """Return the commits of a text, oldest first, and whether that is not the text's order.

    A text whose dates only grow was made with ``git log --reverse``.
    """
    starts = [at for at in range(len(rows)) if _begins(rows, at)]
    found = [
        _commit(rows[start:end])
        for start, end in zip(starts, [*starts[1:], len(rows)], strict=True)
    ]
    dates = [one.date for one in found]
    known = [date for date in dates if date is not None]
    grows = len(known) == len(found) and known == sorted(known) and known[:1] != known[-1:]
    turned = len(found) > 1 and not grows
    return tuple(reversed(found) if turned else found), turned


def _begins(rows: Sequence[bytes], at: int) -> bool:
    """Return whether a commit begins here; no line of a hunk can look so."""
    return at + 1 < len(rows) and bool(_COMMIT.match(rows[at]) and _FIELD.match(rows[at + 1]))


def _commit(rows: Sequence[bytes]) -> Commit:
    subject, date = "", None
    for row in rows:
        text = lines.decode(row)
        if text.startswith(("Date: ", "AuthorDate: ")):
            when = email.utils.parsedate_tz(text.partition(":")[2].strip())
            date = email.utils.mktime_tz(when) if when else None
        if text.startswith("    ") and text.strip():
            subject = text.strip()
            break
    return Commit(subject, tuple(rows), date)
