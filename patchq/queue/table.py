"""What `queue.toml` says; the format is in `patchq.queue.store`.

Every key is checked: one that does not exist is an error that names the nearest.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from patchq.errors import UsageError

# Specifiers that need no look by packaging, whose import takes longer than all else here.
_BOUND = r"\s*(?:[<>]=?|[!=]=)\s*[0-9]+(?:\.[0-9]+)*\s*"
_PLAIN = re.compile(f"{_BOUND}(?:,{_BOUND})*")
_KEYS = ("distribution", "summary", "owner", "upstream", "imports", "patches")
_PATCH_KEYS = ("for", "upstream")


@dataclass(frozen=True, slots=True)
class PatchNote:
    """What a queue says of one patch: the releases that need it, the change upstream."""

    releases: str = ""
    upstream: str = ""

    def needed(self, release: str) -> bool:
        """Return whether `release` needs the patch; PEP 440, on the release part only.

        One that is no version at all needs it.

        Example:
            >>> PatchNote("<0.16").needed("0.16.0rc1"), PatchNote("<0.16").needed("0.15.1")
            (False, True)
        """
        from packaging.specifiers import SpecifierSet
        from packaging.version import InvalidVersion, Version

        try:
            base = Version(release).base_version
        except InvalidVersion:
            return True
        return not self.releases or SpecifierSet(self.releases).contains(base)


@dataclass(frozen=True, slots=True)
class Settings:
    """A queue.toml."""

    distribution: str
    summary: str
    owner: str = ""
    upstream: tuple[str, ...] = ()
    imports: tuple[str, ...] = ()
    patches: Mapping[str, PatchNote] = field(default_factory=dict)


def read(document: Mapping[str, object], *, source: str) -> Settings:
    """Return the settings that a parsed queue.toml holds; `source` is for messages.

    Raises:
        UsageError: a key that does not exist, is missing, or has a value of the wrong kind.
    """
    _known(document, _KEYS, source)
    for key in ("distribution", "summary"):
        if not document.get(key):
            raise UsageError(
                f"{source} has no {key!r}",
                why="a queue says which distribution it patches, and what for",
                mend=f'write {key} = "..." into {source}',
            )
    upstream = _list(document, "upstream", '["https://..."]', source)
    imports = _list(document, "imports", '["package.module"]', source)
    patches = document.get("patches", {})
    if not isinstance(patches, dict):
        raise _kind(source, "patches", "a table per patch: [patches.NAME]")
    return Settings(
        _text(document, "distribution", source),
        _text(document, "summary", source),
        _text(document, "owner", source),
        upstream,
        imports,
        {name: _note(name, note, source) for name, note in patches.items()},
    )


def order(release: str) -> tuple[object, ...]:
    """Return a key that sorts releases as PEP 440 does; other names come first.

    Example:
        >>> sorted(["0.16.0", "0.9", "x", "0.16.0rc1"], key=order)
        ['x', '0.9', '0.16.0rc1', '0.16.0']
    """
    from packaging.version import InvalidVersion, Version

    try:
        return True, Version(release), release
    except InvalidVersion:
        return False, release


def _note(name: str, value: object, source: str) -> PatchNote:
    """Return what one table of a patch says."""
    where = f"patches.{name}"
    if not isinstance(value, dict):
        raise _kind(source, where, "a table")
    if re.search(r"\.(patch|diff)$", name):
        stem = name.rpartition(".")[0]
        raise UsageError(
            f"{source}: {where!r} names a file",
            why="a patch has one entry for all releases, under its name without .patch",
            mend=f'write [patches."{stem}"]',
        )
    _known(value, _PATCH_KEYS, f"{source}: {where}")
    releases = _text(value, "for", source)
    if releases and not _PLAIN.fullmatch(releases):
        from packaging.specifiers import InvalidSpecifier, SpecifierSet

        try:
            SpecifierSet(releases)
        except InvalidSpecifier as error:
            raise _kind(source, f"{where}.for", 'a PEP 440 specifier: "<0.16"') from error
    return PatchNote(releases, _text(value, "upstream", source))


def _known(document: Mapping[str, object], keys: tuple[str, ...], source: str) -> None:
    """Refuse a key that does not exist; the nearest that does is named."""
    for key in document:
        if key not in keys:
            near = difflib.get_close_matches(key, keys, 1, 0.0)[0]
            raise UsageError(
                f"{source}: the key {key!r} does not exist",
                why=f"the keys are {', '.join(keys)}",
                mend=f"write {near!r}, or take the key out",
            )


def _list(document: Mapping[str, object], key: str, example: str, source: str) -> tuple[str, ...]:
    value = document.get(key, [])
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise _kind(source, key, f"a list: {example}")
    return tuple(value)


def _text(document: Mapping[str, object], key: str, source: str) -> str:
    value = document.get(key, "")
    if isinstance(value, str):
        return value
    raise _kind(source, key, "text")


def _kind(source: str, key: str, kind: str) -> UsageError:
    return UsageError(
        f"{source}: {key!r} has a value of the wrong kind",
        why=f"it must be {kind}",
        mend=f"correct {key!r} in {source}",
    )
