"""The keys that a host may show, as asyncssh takes them."""

from __future__ import annotations

import contextlib

import asyncssh
from cryptography.exceptions import UnsupportedAlgorithm

from patchq.transport.hostkeys import HostKeys
from patchq.transport.knownlines import Entry


def trust(keys: HostKeys) -> tuple[list[asyncssh.SSHKey], ...]:
    """Return the keys of a host, of authorities, and those that are revoked."""
    return loaded(keys.trusted), loaded(keys.authorities), loaded(keys.revoked)


def loaded(entries: tuple[Entry, ...]) -> list[asyncssh.SSHKey]:
    """Return the keys of these lines; one that asyncssh lacks or cannot read is left out."""
    keys = []
    for entry in entries:
        # Below asyncssh, numbers that no key has are errors of other kinds.
        with contextlib.suppress(
            asyncssh.KeyImportError, ValueError, OverflowError, UnsupportedAlgorithm
        ):
            keys.append(asyncssh.import_public_key(entry.text))
    return keys
