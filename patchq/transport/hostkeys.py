"""known_hosts: read once per run, and asked which keys a host may show.

asyncssh gives one error for a host key that is unknown, changed or revoked, so
the look-up is made here, as sshd(8) § SSH_KNOWN_HOSTS FILE FORMAT says: names and
patterns, negated ones, hashed names, ``@cert-authority``, ``@revoked``. A port other
than 22 is looked for as ``[name]:port`` first, then without it, as ssh(1) does.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from patchq.errors import HostError
from patchq.transport import sshconfig
from patchq.transport.route import Hop


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of a known_hosts file; `key` is the blob, decoded."""

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

    def names_host(self, name: str) -> bool:
        """Return whether the line is about `name`."""
        if self.names[0].startswith("|"):
            return any(_hashes(pattern, name) for pattern in self.names)
        return sshconfig.matches(self.names, name)


@dataclass(frozen=True, slots=True)
class HostKeys:
    """The lines of known_hosts that are about one host."""

    trusted: tuple[Entry, ...] = ()
    authorities: tuple[Entry, ...] = ()
    revoked: tuple[Entry, ...] = ()


class HostKeyUnknown(HostError):
    """known_hosts has no key of this host."""


class HostKeyChanged(HostError):
    """The host shows another key than known_hosts has."""


class HostKeyRevoked(HostError):
    """The host shows a key that known_hosts marks as revoked."""


class KnownHosts:
    """The known_hosts files of one run; each is read once."""

    def __init__(self) -> None:
        self._files: dict[Path, tuple[dict[str, list[Entry]], list[Entry]]] = {}

    def look_up(self, hop: Hop) -> HostKeys:
        """Return what the files of `hop` say of it."""
        found = self._named(hop.known_hosts, hop.known_as)
        if hop.label is None and not (found.trusted or found.authorities):
            plain = self._named(hop.known_hosts, hop.name)
            return HostKeys(plain.trusted, plain.authorities, found.revoked + plain.revoked)
        return found

    def _named(self, paths: Iterable[Path], name: str) -> HostKeys:
        name = name.lower()
        entries: list[Entry] = []
        for path in paths:
            if path not in self._files:
                self._files[path] = _read(path)
            exact, others = self._files[path]
            entries += exact.get(name, [])
            entries += (entry for entry in others if entry.names_host(name))
        return HostKeys(
            tuple(entry for entry in entries if not entry.marker),
            tuple(entry for entry in entries if entry.marker == "@cert-authority"),
            tuple(entry for entry in entries if entry.marker == "@revoked"),
        )


def refusal(hop: Hop, keys: HostKeys, algorithm: str, key: bytes) -> HostError:
    """Return why `key`, which the host showed, is not accepted."""
    shown = f"it shows the {algorithm} key {fingerprint(key)}"
    name, path = shlex.quote(hop.known_as), (*hop.known_hosts, Path("~/.ssh/known_hosts"))[0]
    if bad := tuple(entry for entry in keys.revoked if entry.key == key):
        return revoked(hop, bad)
    known = [entry for entry in keys.trusted if entry.algorithm == algorithm]
    if known:
        return HostKeyChanged(
            f"the host key of {hop.alias} has changed; somebody may be listening in",
            why=f"{shown}; {_where(known)} has {fingerprint(known[0].key)}",
            mend=f"if the host got a new key: ssh-keygen -R {name} -f {known[0].path}",
        )
    others = "".join(f"; {_where([e])} has its {e.algorithm} key" for e in keys.trusted)
    port = "" if hop.port == 22 else f" -p {hop.port}"
    scan = f"ssh-keyscan{port} -t {_type(algorithm)} {shlex.quote(hop.name)} >> {path}"
    return HostKeyUnknown(
        f"the host key of {hop.alias} is not known",
        why=f"{shown}; {path} has none for {hop.known_as}{others}",
        mend=f"compare the fingerprint, then: {hop.ssh} true, or: {scan}",
    )


def revoked(hop: Hop, entries: tuple[Entry, ...]) -> HostError:
    """Return the error for a host that shows a key of these lines."""
    name, path = shlex.quote(hop.known_as), entries[0].path
    return HostKeyRevoked(
        f"the host key of {hop.alias} is revoked",
        why=f"it shows {fingerprint(entries[0].key)}, which {_where(entries)} marks @revoked",
        mend=f"give the host another key; to see the lines: ssh-keygen -F {name} -f {path}",
    )


def fingerprint(key: bytes) -> str:
    """Return the fingerprint as ``ssh-keygen -l`` prints it."""
    digest = base64.b64encode(hashlib.sha256(key).digest())
    return "SHA256:" + digest.decode().rstrip("=")


def _read(path: Path) -> tuple[dict[str, list[Entry]], list[Entry]]:
    exact: dict[str, list[Entry]] = {}
    others: list[Entry] = []
    try:
        text = path.read_text(encoding="utf-8", errors="surrogateescape")
    except (FileNotFoundError, NotADirectoryError):
        text = ""
    for number, line in enumerate(text.split("\n"), 1):
        entry = _entry(path, number, line)
        if entry is None:
            continue
        if any(set(name) & set("*?!|") for name in entry.names):
            others.append(entry)
        else:
            for name in entry.names:
                exact.setdefault(name.lower(), []).append(entry)
    return exact, others


def _entry(path: Path, number: int, line: str) -> Entry | None:
    words = line.split()
    marker = words.pop(0) if words and words[0].startswith("@") else ""
    if len(words) < 3 or words[0].startswith("#"):
        return None
    try:
        key = base64.b64decode(words[2], validate=True)
    except (binascii.Error, ValueError):
        return None
    return Entry(path, number, marker, tuple(words[0].split(",")), words[1], key)


def _hashes(pattern: str, name: str) -> bool:
    _, magic, salt, digest = [*pattern.split("|"), "", "", ""][:4]
    try:
        found = hmac.digest(base64.b64decode(salt), name.encode(errors="surrogateescape"), "sha1")
        return magic == "1" and base64.b64decode(digest) == found
    except (binascii.Error, ValueError):
        return False


def _where(entries: Iterable[Entry]) -> str:
    return ", ".join(f"{entry.path}:{entry.line}" for entry in entries)


def _type(algorithm: str) -> str:
    return "ecdsa" if algorithm.startswith("ecdsa") else algorithm.removeprefix("ssh-")
