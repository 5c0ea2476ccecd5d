"""The file name of a patch that came from elsewhere."""

from __future__ import annotations

import re
from collections.abc import Sequence

_NUMBERED = re.compile(r"\d{4,}-(.+)\.(?:patch|diff)")
# git's FORMAT_PATCH_NAME_MAX_DEFAULT counts "0001-", ".patch" and a NUL.
_LONGEST = 64 - len("0001-") - len(".patch") - 1


def from_subject(subject: str) -> str:
    """Return the name that git-format-patch gives a commit, without its number; may be empty.

    Example:
        >>> from_subject("Fix: the [big] one..."), from_subject("...")
        ('Fix-the-big-one.patch', '')
    """
    stem = re.sub(r"[^A-Za-z0-9._]+", "-", subject)
    stem = re.sub(r"\.\.+", ".", stem).lstrip("-").rstrip(".-")
    stem = stem[:_LONGEST].lstrip("-.")
    return f"{stem}.patch" if stem else ""


def from_file(name: str) -> str:
    """Return the name of a patch from its file's: quilt keeps it, git's number goes.

    Example:
        >>> from_file("a/0001-fix-it.patch"), from_file("fix.diff")
        ('fix-it.patch', 'fix.diff')
    """
    base = name.rpartition("/")[2]
    match = _NUMBERED.fullmatch(base)
    return f"{match[1]}.patch" if match else base


def says_nothing(name: str) -> bool:
    """Return whether a file's name is a number only, as that of a pull request's patch."""
    return re.fullmatch(r"(?:v\d+-)?\d+(?:\.patch|\.diff)?", name.rpartition("/")[2]) is not None


def distinct(names: Sequence[str]) -> tuple[str, ...]:
    """Return names of which none is there twice; an empty one is its number, as git counts.

    Example:
        >>> distinct(["a.patch", "", "a.patch"])
        ('a.patch', '0002.patch', 'a-2.patch')
    """
    out: dict[str, None] = {}
    counts: dict[str, int] = {}
    for number, name in enumerate(names, 1):
        name = name or f"{number:04}.patch"
        stem = name.removesuffix(".patch")
        while name in out:
            counts[stem] = counts.get(stem, 1) + 1
            name = f"{stem}-{counts[stem]}.patch"
        out[name] = None
    return tuple(out)
