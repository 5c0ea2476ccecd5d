"""A patch file: a DEP-3 header, kept byte for byte, then a unified diff.

The header (https://dep-team.pages.debian.net/deps/dep3/) is all above the first
diff::

    Description: one line
     further lines begin with a space; " ." stands for an empty one
    Author: Who <who@example.org>
    Forwarded: https://github.com/...
    ---
    diff --git a/... b/...

A header in git's mail format (``From:``, ``Subject:``, free text) is read as well.
patchq never writes a header anew; `fields` is for showing and for queries.
Version 1. The diff is `patchq.engine.diff`'s.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from patchq.engine import diff, lines
from patchq.errors import UsageError
from patchq.model import FileDiff, Patch
from patchq.queue import reading

_FIELD = re.compile(r"([A-Za-z][A-Za-z0-9-]*):(?:[ \t]+(.*)|)$")
# DEP-3: the names that git's mails have for two of its fields.
_SAME = {"Subject": "Description", "From": "Author"}


def load(
    path: Path,
    *,
    name: str | None = None,
    strip: int = 1,
    reverse: bool = False,
    sketch: bytes | None = None,
    sketch_name: str = "",
    exists: Callable[[str], bool] | None = None,
) -> Patch:
    """Return the patch at `path`, read whole; `name` is its name in the series.

    `exists` tells which files there are, for a diff that has two names; None for all.

    Raises:
        UsageError: there is no such file.
        PatchFormatError: its text is not a patch that patchq can read.
    """
    name = path.name if name is None else name
    text = read(path, name)
    if exists is None:
        header, diffs = _parsed(text, name=name, strip=strip)
    else:
        header, diffs = diff.parse(text, name=name, strip=strip, exists=exists)
    return Patch(name, text, header, diffs, strip, reverse, sketch, sketch_name)


@lru_cache(maxsize=1024)
def _parsed(text: bytes, *, name: str, strip: int) -> tuple[bytes, tuple[FileDiff, ...]]:
    """Parse a patch once: a verb that edits a series reads all of it several times."""
    return diff.parse(text, name=name, strip=strip)


def read(path: Path, name: str) -> bytes:
    """Return the bytes of a patch that a series lists."""
    text = reading.read(path)
    if text is not None:
        return text
    raise UsageError(
        f"the series lists {name}, and there is no such file",
        why=f"{path} is missing",
        mend=f"put the file there, or take its name out of {path.parent}/series",
    )


def fields(header: bytes) -> dict[str, str]:
    r"""Return the fields of a header by name, free text under ``Description``.

    A field that is given more than once has one value a line. ``Subject`` and
    ``From`` count as ``Description`` and ``Author``; names come capitalized.

    Example:
        >>> fields(b"Description: short\n longer\nBug: #1\nBug: #2\n")
        {'Description': 'short\nlonger', 'Bug': '#1\n#2'}
    """
    values: dict[str, list[str]] = {}
    field, fresh = "", True
    for line in lines.decode(header).split("\n"):
        text = line.removesuffix("\r")
        if text == "---":
            break
        match = _FIELD.match(text) if fresh else None
        if match:
            field = "-".join(word.capitalize() for word in match[1].split("-"))
            field = _SAME.get(field, field)
            values.setdefault(field, []).append(match[2] or "")
        elif field and text[:1] in (" ", "\t"):
            values[field].append("" if text.strip() == "." else text[1:])
        elif not text.strip():
            field, fresh = "", True
        elif not re.match(r"From [0-9a-f]{7,64} ", text):
            field, fresh = "", False
            values.setdefault("Description", []).append(text)
    return {name: "\n".join(parts).strip() for name, parts in values.items()}
