"""Whom patchq says it is: keys of the SSH agent, keys in files. Never a prompt."""

from __future__ import annotations

import functools
import itertools
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path

import asyncssh

from patchq.transport import regular
from patchq.transport.notes import Notes
from patchq.transport.route import Hop

# sshd hangs up after six tries (MaxAuthTries).
OFFERED = 5
_OTHER = "it is no regular file"
_TOUCHED = "it is on a security key, which ssh(1) alone uses"


class Identities:
    """The private keys of one run: each file is read once, and only when needed."""

    def __init__(self) -> None:
        self._files: dict[tuple[Path, tuple[Path, ...]], tuple[asyncssh.SSHKeyPair, ...]] = {}
        self._notes: dict[Path, str] = {}

    def notes(self, hop: Hop) -> tuple[str, ...]:
        """Return why key files of `hop` could not be used."""
        return tuple(f"{p}: {self._notes[p]}" for p in hop.identities if p in self._notes)

    async def offers(self, hop: Hop, noted: Notes) -> AsyncGenerator[asyncssh.SSHKeyPair, None]:
        """Yield the keys to offer, the likeliest first, at most `OFFERED`.

        Keys that ssh_config names come first, from the agent where it has them;
        then the agent's others, unless ``IdentitiesOnly`` forbids; then the files.
        A key on a security key wants a touch each time: it is left out, and noted. The
        agent is connected as long as the generator lives: close it.
        """
        agent = asyncssh.SSHAgentClient(hop.agent) if hop.agent else None
        try:
            held = await _held(agent)
            for path in filter(_is_touched, hop.identities if hop.chosen else ()):
                noted.skipped(path)
            for pair in itertools.islice(self._ordered(hop, held), OFFERED):
                yield pair
        finally:
            if agent is not None:
                agent.close()

    def _ordered(
        self, hop: Hop, held: dict[bytes, asyncssh.SSHKeyPair]
    ) -> Iterator[asyncssh.SSHKeyPair]:
        named = [blob for path in hop.identities if (blob := _public(path)) in held]
        yield from (held[blob] for blob in named)
        if hop.chosen:
            yield from self._from_files(hop, held)
        if not hop.only_chosen:
            yield from (pair for blob, pair in held.items() if blob not in named)
        if not hop.chosen:
            yield from self._from_files(hop, held)

    def _from_files(
        self, hop: Hop, held: dict[bytes, asyncssh.SSHKeyPair]
    ) -> Iterator[asyncssh.SSHKeyPair]:
        for path in hop.identities:
            for pair in self._load(path, hop.certificates):
                if pair.public_data not in held:
                    yield pair

    def _load(self, path: Path, certificates: tuple[Path, ...]) -> tuple[asyncssh.SSHKeyPair, ...]:
        key = path, certificates
        if key not in self._files:
            if path.suffix == ".pub":
                return ()
            if _is_touched(path) or regular.is_other(path):
                self._notes[path] = _TOUCHED if _is_touched(path) else _OTHER
                return ()
            try:
                there = [str(file) for file in certificates if file.is_file()]
                pairs = asyncssh.load_keypairs(str(path), certlist=there)
                self._files[key] = tuple(p for p in pairs if not _is_security(p.algorithm))
                if len(self._files[key]) < len(pairs):
                    self._notes[path] = _TOUCHED
            except FileNotFoundError:
                pass
            except OSError as error:
                if regular.is_exhausted(error):
                    raise
                self._notes[path] = str(error.strerror)
            except asyncssh.KeyEncryptionError:
                self._notes[path] = "it has a passphrase, and the SSH agent does not hold it"
            except asyncssh.KeyImportError as error:
                passphrase = "passphrase" in str(error).lower()
                self._notes[path] = "it has a passphrase" if passphrase else str(error)
            except ValueError as error:  # below asyncssh: numbers that no key has
                self._notes[path] = str(error)
        return self._files.setdefault(key, ())


async def _held(agent: asyncssh.SSHAgentClient | None) -> dict[bytes, asyncssh.SSHKeyPair]:
    if agent is None:
        return {}
    try:
        pairs = await agent.get_keys()
        return {pair.public_data: pair for pair in pairs if not _is_security(pair.algorithm)}
    except (OSError, ValueError) as error:
        if regular.is_exhausted(error):
            raise
        # A socket whose agent has gone: ssh(1) goes on without, too.
        return {}


@functools.cache
def _is_touched(path: Path) -> bool:
    """Return whether a key file, or its public half, names a security key."""
    try:
        public = regular.text(path if path.suffix == ".pub" else Path(f"{path}.pub"))
    except (OSError, ValueError) as error:
        if regular.is_exhausted(error):
            raise  # and is not kept
        public = ""
    algorithm = public.split(maxsplit=1)[0] if public.strip() else ""
    return _is_security(algorithm.encode(errors="surrogateescape"))


def _is_security(algorithm: bytes) -> bool:
    return algorithm.startswith((b"sk-ssh-", b"sk-ecdsa-"))


def _public(path: Path) -> bytes:
    """Return the public half of a key, which tells whether the agent has it.

    It lies beside the key file; ssh_config may also name the public file itself.
    """
    file = path if path.suffix == ".pub" else Path(f"{path}.pub")
    try:
        public: bytes = asyncssh.import_public_key(regular.text(file)).public_data
    except (OSError, ValueError) as error:
        if regular.is_exhausted(error):
            raise
        return b""
    return public
