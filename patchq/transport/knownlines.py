"""The lines of one known_hosts file, and those that are about a name.

A hashed name is salted, so that each such line must be tried: what does not depend on the
name is computed once, since files of some 10,000 lines are in use.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from patchq.transport import regular, sshconfig

_BLOCK = 64
_INNER = bytes(0x36 ^ byte for byte in range(256))
_OUTER = bytes(0x5C ^ byte for byte in range(256))


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of a known_hosts file; `key` is the blob, decoded, empty where it cannot be."""

    path: Path
    line: int
    marker: str
    names: tuple[str, ...]
    algorithm: str
    key: bytes

    @property
    def text(self) -> str:
        """The key as authorized_keys has it."""
        return f"{self.algorithm} {base64.b64encode(self.key).decode()}"


@dataclass(frozen=True, slots=True)
class Lines:
    """The lines of a file: by their names, with patterns, with hashed names."""

    exact: dict[str, list[Entry]] = field(default_factory=dict)
    patterns: list[Entry] = field(default_factory=list)
    hashed: list[tuple[Any, Any, bytes, Entry]] = field(default_factory=list)

    def add(self, entry: Entry) -> None:
        """Add a line."""
        if entry.names[0].startswith("|"):
            self.hashed.extend(
                (*found, entry) for found in map(_salted, entry.names) if found is not None
            )
        elif any(set(name) & set("*?!") for name in entry.names):
            self.patterns.append(entry)
        else:
            for name in entry.names:
                self.exact.setdefault(name.lower(), []).append(entry)

    def about(self, name: str) -> Iterator[Entry]:
        """Yield the lines about `name`, which is lower case."""
        yield from self.exact.get(name, [])
        yield from (entry for entry in self.patterns if sshconfig.matches(entry.names, name))
        text = name.encode(errors="surrogateescape")
        for inner, outer, digest, entry in self.hashed:
            first, second = inner.copy(), outer.copy()
            first.update(text)
            second.update(first.digest())
            if second.digest() == digest:
                yield entry


def read(path: Path) -> Lines:
    """Return the lines of a file; one that is not there has none.

    Raises:
        OSError: it cannot be read, or is no regular file.
    """
    lines = Lines()
    try:
        text = regular.text(path)
    except (FileNotFoundError, NotADirectoryError):
        text = ""
    for number, line in enumerate(text.split("\n"), 1):
        entry = _entry(path, number, line)
        if entry is not None:
            lines.add(entry)
    return lines


def _entry(path: Path, number: int, line: str) -> Entry | None:
    words = line.split()
    marker = words.pop(0) if words and words[0].startswith("@") else ""
    if not words or words[0].startswith("#"):
        return None
    names, algorithm, text = [*words, "", ""][:3]
    try:
        key = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        key = b""
    key = key if _is_whole(key) else b""
    return Entry(path, number, marker, tuple(names.split(",")), algorithm, key)


def _is_whole(key: bytes) -> bool:
    """Return whether a blob is what all keys are: a row of strings, each after its length."""
    at = 0
    while at < len(key):
        at += 4 + int.from_bytes(key[at : at + 4], "big")
    return at == len(key)


def _salted(name: str) -> tuple[Any, Any, bytes] | None:
    """Return the two halves of HMAC-SHA1 by a name's salt, and its digest; None if it has none."""
    _, magic, salt, digest = [*name.split("|"), "", "", ""][:4]
    try:
        key, wanted = base64.b64decode(salt), base64.b64decode(digest)
    except (binascii.Error, ValueError):
        return None
    if magic != "1" or len(key) > _BLOCK:
        return None
    key = key.ljust(_BLOCK, b"\0")
    return _sha1(key.translate(_INNER)), _sha1(key.translate(_OUTER)), wanted


def _sha1(data: bytes) -> Any:
    return hashlib.sha1(data, usedforsecurity=False)
