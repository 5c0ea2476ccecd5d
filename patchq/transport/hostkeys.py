"""known_hosts: read once per run, and asked which keys a host may show.

asyncssh gives one error for a host key that is unknown, changed or revoked, so
the look-up is made here, as sshd(8) § SSH_KNOWN_HOSTS FILE FORMAT says: names and
patterns, negated ones, hashed names, ``@cert-authority``, ``@revoked``. A port other
than 22 is looked for as ``[name]:port`` first, then without it, as ssh(1) does. A line
that cannot be read gives no key, but the host it names is not new.
"""

from __future__ import annotations

import base64
import fcntl
import hashlib
import hmac
import os
import shlex
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from patchq.errors import HostError
from patchq.transport import knownlines
from patchq.transport.knownlines import Entry, Lines
from patchq.transport.route import Hop


@dataclass(frozen=True, slots=True)
class HostKeys:
    """The lines of known_hosts that are about one host; those that are `unread` have no key."""

    trusted: tuple[Entry, ...] = ()
    authorities: tuple[Entry, ...] = ()
    revoked: tuple[Entry, ...] = ()
    unread: tuple[Entry, ...] = ()


class HostKeyUnknown(HostError):
    """known_hosts has no key of this host."""


class HostKeyChanged(HostError):
    """The host shows another key than known_hosts has."""


class HostKeyRevoked(HostError):
    """The host shows a key that known_hosts marks as revoked."""


class KnownHosts:
    """The known_hosts files of one run; each is read once.

    `thread` is where to look up and add while others wait on the network.
    """

    def __init__(self) -> None:
        self.thread = ThreadPoolExecutor(1)
        self._files: dict[Path, Lines] = {}
        self._stamps: dict[Path, tuple[int, int]] = {}

    def look_up(self, hop: Hop) -> HostKeys:
        """Return what the files of `hop` say of it.

        Raises:
            HostKeyUnknown: one of them cannot be read.
        """
        found = self._named(hop.known_hosts, hop.known_as)
        if hop.known_as not in (hop.label, hop.name) and not (found.trusted or found.authorities):
            plain = self._named(hop.known_hosts, hop.name)
            revoked, unread = found.revoked + plain.revoked, found.unread + plain.unread
            return HostKeys(plain.trusted, plain.authorities, revoked, unread)
        return found

    def add(self, hop: Hop, algorithm: str, key: bytes) -> Path:
        """Write the key of a host that no file has an entry of; return the file.

        Raises:
            HostKeyUnknown: it cannot be written.
            HostError: the host got an entry meanwhile, and shows another key.
        """
        path = hop.records
        if path is None:
            raise _unwritten(hop, "UserKnownHostsFile is none")
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            number = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
            with open(number, "r+b", buffering=0) as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                self._add(hop, path, file, Entry(path, 0, "", (hop.known_as,), algorithm, key))
        except OSError as error:
            raise _unwritten(hop, f"{path}: {error.strerror}") from error
        return path

    def _add(self, hop: Hop, path: Path, file: BinaryIO, entry: Entry) -> None:
        """Append an entry to a file that is locked, unless another run was first."""
        if self._stamps.get(path) != _stamp(file):
            self._files.pop(path, None)
        keys = self.look_up(hop)
        if keys != HostKeys():
            if entry.key in {each.key for each in keys.trusted}:
                return
            raise refusal(hop, keys, entry.algorithm, entry.key)
        if file.seek(0, os.SEEK_END) and os.pread(file.fileno(), 1, file.tell() - 1) != b"\n":
            file.write(b"\n")
        name = _hashed(hop.known_as) if hop.hashed else hop.known_as
        file.write(f"{name} {entry.text}\n".encode(errors="surrogateescape"))
        self._files[path].exact.setdefault(hop.known_as.lower(), []).append(entry)
        self._stamps[path] = _stamp(file)

    def _named(self, paths: Iterable[Path], name: str) -> HostKeys:
        name = name.lower()
        entries: list[Entry] = []
        for path in paths:
            entries += self._lines(path).about(name)
        read = [entry for entry in entries if entry.key]
        return HostKeys(
            tuple(entry for entry in read if not entry.marker),
            tuple(entry for entry in read if entry.marker == "@cert-authority"),
            tuple(entry for entry in read if entry.marker == "@revoked"),
            tuple(entry for entry in entries if not entry.key),
        )

    def _lines(self, path: Path) -> Lines:
        if path not in self._files:
            try:
                self._files[path] = knownlines.read(path)
            except (OSError, ValueError) as error:
                # Left out, it would make a host new that is not.
                raise HostKeyUnknown(
                    f"{path}, which has the keys of hosts, cannot be read",
                    why=getattr(error, "strerror", None) or str(error),
                    mend=f"ls -l {shlex.quote(str(path))}",
                ) from error
        return self._files[path]


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
    if keys.unread and not keys.trusted:
        first = keys.unread[0]
        return HostKeyUnknown(
            f"the line of known_hosts for {hop.alias} cannot be read",
            why=f"{_where(keys.unread)} names it and has no key that can be decoded; {shown}",
            mend=f"compare the fingerprint; ssh-keygen -R {name} -f {first.path}, or: "
            f"sed -i {first.line}d {first.path}",
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


def _unwritten(hop: Hop, why: str) -> HostError:
    return HostKeyUnknown(
        f"the host key of {hop.alias} is new, and cannot be written to known_hosts",
        why=why,
        mend=f"let it be written there, or write it by hand: {hop.ssh} true",
    )


def _stamp(file: BinaryIO) -> tuple[int, int]:
    status = os.fstat(file.fileno())
    return status.st_size, status.st_mtime_ns


def _hashed(name: str) -> str:
    salt = os.urandom(20)
    digest = hmac.digest(salt, name.lower().encode(errors="surrogateescape"), "sha1")
    return "|1|" + "|".join(base64.b64encode(part).decode() for part in (salt, digest))


def _where(entries: Iterable[Entry]) -> str:
    return ", ".join(f"{entry.path}:{entry.line}" for entry in entries)


def _type(algorithm: str) -> str:
    return "ecdsa" if algorithm.startswith("ecdsa") else algorithm.removeprefix("ssh-")
