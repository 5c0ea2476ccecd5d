"""How distributions and releases are called in the store, and what may not be.

A release is a version, or a version and a build tag (``0.20.1-1``), or all of a
wheel's name behind the distribution where two platforms' texts differ.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from patchq.agent import protocol
from patchq.errors import PatchqError
from patchq.releases.note import WheelNote

_NAME = re.compile(r"(?!.*\.\.)[A-Za-z0-9][A-Za-z0-9._+!-]*(?<!\.lock)(?<!\.)")


class NameRefusedError(PatchqError):
    """A wheel or one of its files has a name that git or a file system misreads."""


def canonical(distribution: str) -> str:
    """Return the name as indexes spell it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", distribution).lower()


def is_release(name: str) -> bool:
    """Return True if a release can be called so."""
    return _NAME.fullmatch(name) is not None


def version(release: str) -> str | None:
    """Return the version of a release, without build tag and platform; None for no version.

    Example:
        >>> version("0.20.1-1"), version("0.20.1-cp311-none-any"), version("nightly")
        ('0.20.1', '0.20.1', None)
    """
    return release.partition("-")[0] if order(release)[0] else None


def order(release: str) -> tuple[object, ...]:
    """Return the key by which releases are sorted: version, then build tag."""
    from packaging.version import InvalidVersion, Version

    version, _, build = release.partition("-")
    try:
        return (1, Version(version), len(build), build)
    except InvalidVersion:
        return (0, release)


def refuse(note: WheelNote, paths: Iterable[str]) -> None:
    """Raise `NameRefusedError` for a name that git, or a file system, would take for another."""
    for name in (note.release, note.stem):
        if not is_release(name):
            raise NameRefusedError(
                f"{note.filename} cannot be kept",
                why=f"{name!r} cannot be the name of a tag",
                mend="rename the wheel as the packaging specifications say",
            )
    for path in paths:
        reason = protocol.unsafe(path)
        if reason is not None:
            raise NameRefusedError(
                f"{note.filename} cannot be kept",
                why=f"its file {path!r} is refused: {reason}",
                mend="get the wheel from another index",
            )
