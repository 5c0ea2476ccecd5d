"""From hops to an authenticated connection, or the error that says why there is none.

A connection that is dropped before it was authenticated is tried again, since
sshd drops when many knock at once (MaxStartups); nothing else is tried twice.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import random
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import asyncssh

from patchq.transport import hostkeys, unreached
from patchq.transport.channel import DEADLINES, Deadlines
from patchq.transport.hostkeys import HostKeys, KnownHosts
from patchq.transport.identities import Identities
from patchq.transport.route import Hop, Surroundings
from patchq.transport.unreached import Attempt

# Tries of a connection that is dropped before authentication; the first pause, in seconds.
TRIES = 5
PAUSE = 0.2
# A link is given up after KEEPALIVE * (KEPT + 1) seconds of silence.
KEEPALIVE = 5
KEPT = 3
# AES-GCM first: half the cost of asyncssh's own first choice, ChaCha20 in Python.
CIPHERS = (
    "aes128-gcm@openssh.com",
    "aes256-gcm@openssh.com",
    "chacha20-poly1305@openssh.com",
    "aes256-ctr",
    "aes192-ctr",
    "aes128-ctr",
)


@dataclass(frozen=True, slots=True)
class Settings:
    """What all hosts of a run share; files and keys in it are read once."""

    around: Surroundings
    known_hosts: KnownHosts = field(default_factory=KnownHosts)
    identities: Identities = field(default_factory=Identities)
    deadlines: Deadlines = DEADLINES

    @classmethod
    def read(cls, environ: Mapping[str, str], config: Path | None = None) -> Settings:
        """Return the settings of the user whose environment this is; `config` as ``ssh -F``."""
        return cls(Surroundings.read(environ, config))


@contextlib.asynccontextmanager
async def connected(
    hops: tuple[Hop, ...], settings: Settings
) -> AsyncIterator[asyncssh.SSHClientConnection]:
    """Keep a connection to the last hop, through the others.

    Raises:
        HostUnreachable: no connection came about.
        HostKeyUnknown, HostKeyChanged, HostKeyRevoked: the host's key is not accepted.
        AuthenticationRefused: no key of the user's is.
    """
    connections: list[asyncssh.SSHClientConnection] = []
    try:
        for hop in hops:
            through = connections[-1] if connections else None
            connections.append(await _connect(hop, settings, through))
        yield connections[-1]
    finally:
        # No wait for the other side's goodbye: all it had to say has been said. A
        # ProxyCommand is a child of ours, and is waited for.
        for hop, connection in reversed([*zip(hops, connections, strict=False)]):
            connection.close()
            if hop.proxy_command:
                await connection.wait_closed()


async def _connect(
    hop: Hop, settings: Settings, through: asyncssh.SSHClientConnection | None
) -> asyncssh.SSHClientConnection:
    keys, deadlines = settings.known_hosts.look_up(hop), settings.deadlines
    pause = PAUSE
    for left in reversed(range(TRIES)):
        attempt = Attempt(hop, keys, hop.connect_timeout or deadlines.connect, deadlines.login)
        async with contextlib.aclosing(settings.identities.offers(hop)) as offers:
            try:
                return await _try(_Client(attempt, offers), through)
            except asyncssh.HostKeyNotVerifiable as error:
                raise unreached.key_refused(attempt, str(error)) from error
            except (ConnectionResetError, asyncssh.ConnectionLost) as error:
                if not (attempt.dropped and left):
                    raise unreached.failed(attempt, error) from error
            except (asyncssh.Error, OSError) as error:
                if attempt.authenticating:
                    notes = settings.identities.notes(hop)
                    raise unreached.login_refused(attempt, error, notes) from error
                raise unreached.failed(attempt, error) from error
        await asyncio.sleep(pause * random.uniform(0.5, 1.5))
        pause *= 2
    raise AssertionError("the last try returns or raises")


async def _try(
    client: _Client, through: asyncssh.SSHClientConnection | None
) -> asyncssh.SSHClientConnection:
    hop = client.attempt.hop
    try:
        async with asyncio.timeout(client.attempt.connect) as client.limit:
            return await asyncssh.connect(
                hop.name,
                hop.port,
                username=hop.user,
                client_factory=lambda: client,
                tunnel=through or (),
                proxy_command=_proxy(hop),
                known_hosts=_trust(client.attempt.keys),
                host_key_alias=hop.label,
                options=_constant(),
            )
    except TimeoutError as error:
        raise unreached.overdue(client.attempt) from error


@functools.cache
def _constant() -> asyncssh.SSHClientConnectionOptions:
    """Return what is the same for every host.

    Keys come one by one from `_Client.public_key_auth_requested`; nothing else is tried.
    """
    return asyncssh.SSHClientConnectionOptions(
        config=None,
        client_keys=None,
        agent_path=None,
        public_key_auth=True,
        password_auth=False,
        kbdint_auth=False,
        host_based_auth=False,
        gss_kex=False,
        gss_auth=False,
        agent_forwarding=False,
        x509_trusted_certs=None,
        encryption_algs=CIPHERS,
        compression_algs=["none"],
        keepalive_interval=KEEPALIVE,
        keepalive_count_max=KEPT,
    )


def _proxy(hop: Hop) -> list[str] | None:
    return ["/bin/sh", "-c", f"exec {hop.proxy_command}"] if hop.proxy_command else None


def _trust(keys: HostKeys) -> tuple[list[asyncssh.SSHKey], ...]:
    return _loaded(keys.trusted), _loaded(keys.authorities), _loaded(keys.revoked)


def _loaded(entries: tuple[hostkeys.Entry, ...]) -> list[asyncssh.SSHKey]:
    """Return the keys of these lines; one of a kind that asyncssh lacks is left out."""
    keys = []
    for entry in entries:
        with contextlib.suppress(asyncssh.KeyImportError):
            keys.append(asyncssh.import_public_key(entry.text))
    return keys


class _Client(asyncssh.SSHClient):
    """What asyncssh asks and tells while it connects."""

    def __init__(self, attempt: Attempt, offers: AsyncIterator[asyncssh.SSHKeyPair]) -> None:
        self.attempt = attempt
        self.limit: asyncio.Timeout | None = None
        self._offers = offers

    def connection_made(self, conn: asyncssh.SSHClientConnection) -> None:
        """Give the login its own time: the network has done its part."""
        self.attempt.connected = True
        if self.limit is not None:
            now = asyncio.get_running_loop().time()
            self.limit.reschedule(now + self.attempt.login)

    def validate_host_public_key(
        self, host: str, addr: str, port: int, key: asyncssh.SSHKey
    ) -> bool:
        """Remember a key that known_hosts does not have, and refuse it."""
        self.attempt.shown = (key.get_algorithm(), key.public_data)
        return False

    def begin_auth(self, username: str) -> None:
        """Note that the host has passed, and the user is asked about."""
        self.attempt.authenticating = True

    async def public_key_auth_requested(self) -> asyncssh.SSHKeyPair | None:
        """Return the next key to offer."""
        pair = await anext(self._offers, None)
        if pair is not None:
            name = pair.get_comment(errors="replace") or "a key"
            self.attempt.offered.append(f"{name} {hostkeys.fingerprint(pair.public_data)}")
        return pair
