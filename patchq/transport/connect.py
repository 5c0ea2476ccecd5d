"""From hops to an authenticated connection, or the error that says why there is none.

A connection that is dropped before it was authenticated is tried again, since
sshd drops when many knock at once (MaxStartups); nothing else is tried twice. Jump
hosts are shared (`links`), hosts are not.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import random
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import asyncssh

from patchq.errors import HostError
from patchq.transport import hostkeys, links, sockets, unreached
from patchq.transport.acquaintance import STRANGER, Acquaintance
from patchq.transport.become import Become
from patchq.transport.channel import DEADLINES, Deadlines
from patchq.transport.hostkeys import HostKeys, KnownHosts
from patchq.transport.identities import Identities
from patchq.transport.links import Links
from patchq.transport.notes import Notes
from patchq.transport.patience import Road
from patchq.transport.route import Hop, Surroundings
from patchq.transport.trust import trust
from patchq.transport.unreached import Attempt

V = TypeVar("V")

# Tries of a connection that is dropped before authentication; the first pause, in seconds.
TRIES = 6
PAUSE = 0.2
# AES-GCM first: half the cost of asyncssh's own first choice, ChaCha20 in Python.
CIPHERS = (
    "aes128-gcm@openssh.com",
    "aes256-gcm@openssh.com",
    "chacha20-poly1305@openssh.com",
    "aes256-ctr",
    "aes192-ctr",
    "aes128-ctr",
)
# Of a host that nothing is known of: its key itself, no certificate of an authority.
HOST_KEYS = (
    "ssh-ed25519",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "rsa-sha2-512",
    "rsa-sha2-256",
)


@dataclass(frozen=True, slots=True)
class Settings:
    """What all hosts of a run share; files and keys in it are read once.

    A link is given up after ``keepalive * (kept + 1)`` seconds of silence, and what bytes on
    their way take (`patience`). `accept_new`: the key of a host that known_hosts does not know
    at all is written there. `become` is the user that agents run as, `known` what is known of
    their interpreters. Jump hosts stay connected while ``async with settings`` lasts.
    """

    around: Surroundings
    known_hosts: KnownHosts = field(default_factory=KnownHosts)
    identities: Identities = field(default_factory=Identities)
    deadlines: Deadlines = DEADLINES
    accept_new: bool = False
    become: Become | None = None
    keepalive: float = 5
    kept: int = 3
    links: Links = field(default_factory=Links)
    noted: Notes = field(default_factory=Notes)
    known: Acquaintance = STRANGER

    @classmethod
    def read(
        cls,
        environ: Mapping[str, str],
        config: Path | None = None,
        *,
        accept_new: bool = False,
        become: Become | None = None,
        known: Acquaintance = STRANGER,
    ) -> Settings:
        """Return the settings of the user whose environment this is; `config` as ``ssh -F``."""
        around = Surroundings.read(environ, config)
        return cls(around, accept_new=accept_new, become=become, known=known)

    @property
    def notes(self) -> list[str]:
        """What the run has to say beside its outcomes, folded over its hosts."""
        return self.noted.lines()

    def road(self, hops: tuple[Hop, ...]) -> Road:
        """Return the stream that leads over these hops."""
        return self.links.road(hops, self.keepalive, self.kept)

    async def close(self) -> None:
        """Close the connections to jump hosts."""
        await self.links.close()

    async def __aenter__(self) -> Settings:
        self.links.enter()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.links.leave()


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
    async with settings:
        connection = await _connect(settings, hops)
        try:
            yield connection
        finally:
            settings.road(hops).leave(connection)
            await links.end(hops[-1], connection)


async def _connect(settings: Settings, hops: tuple[Hop, ...]) -> asyncssh.SSHClientConnection:
    """Return a connection to the last hop."""
    hop, deadlines = hops[-1], settings.deadlines
    keys = await _apart(settings, settings.known_hosts.look_up, hop)
    settings.noted.unheeded(hop.alias, hop.unheeded)
    pause = PAUSE
    for left in reversed(range(TRIES)):
        through = await settings.links.through(hops[:-1], functools.partial(_connect, settings))
        attempt = Attempt(hop, keys, hop.connect_timeout or deadlines.connect, deadlines.login)
        attempt.accepts = settings.accept_new or hop.accept_new
        offers = settings.identities.offers(hop, settings.noted)
        async with settings.links.turn(hop), contextlib.aclosing(offers):
            try:
                connection = await _try(_Client(attempt, offers), through, settings)
                settings.road(hops).join(connection)
                sockets.watch(hops, connection, settings.keepalive * (settings.kept + 1))
                return await _recorded(connection, attempt, settings)
            except (asyncssh.Error, OSError, ValueError) as error:  # a name that is none
                if not left or not _is_worth_another(attempt, error, through):
                    notes = settings.identities.notes(hop)
                    raise unreached.error(attempt, error, notes) from error
        await asyncio.sleep(pause * random.uniform(0.5, 1.5))
        pause *= 2
    raise AssertionError("the last try returns or raises")


def _is_worth_another(
    attempt: Attempt, error: Exception, through: asyncssh.SSHClientConnection | None
) -> bool:
    """Return whether an attempt failed by chance: dropped at the door, or by a lost jump."""
    if through is not None and through.is_closed():
        return not attempt.authenticating
    return attempt.dropped and isinstance(error, ConnectionResetError | asyncssh.ConnectionLost)


async def _recorded(
    connection: asyncssh.SSHClientConnection, attempt: Attempt, settings: Settings
) -> asyncssh.SSHClientConnection:
    """Return a connection once the key of its host, if new, stands in known_hosts."""
    hop = attempt.hop
    if attempt.accepted and attempt.shown is not None:
        try:
            path = await _apart(settings, settings.known_hosts.add, hop, *attempt.shown)
        except HostError:
            await links.end(hop, connection)
            raise
        algorithm, key = attempt.shown
        settings.noted.say(
            f"the host key of {hop.alias} is new: {algorithm} {hostkeys.fingerprint(key)}; "
            f"it was written to {path}"
        )
    return connection


async def _apart(settings: Settings, step: Callable[..., V], *arguments: object) -> V:
    """Run what reads known_hosts off the loop: the file may be long, or locked."""
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(settings.known_hosts.thread, step, *arguments)


async def _try(
    client: _Client, through: asyncssh.SSHClientConnection | None, settings: Settings
) -> asyncssh.SSHClientConnection:
    hop, keys = client.attempt.hop, client.attempt.keys
    plain = () if keys.trusted or keys.authorities else HOST_KEYS
    try:
        async with asyncio.timeout(client.attempt.connect) as client.limit:
            return await asyncssh.connect(
                hop.name,
                hop.port,
                username=hop.user,
                client_factory=lambda: client,
                tunnel=through,
                config=None,  # or the file is parsed again for each host, and its jumps taken
                proxy_command=_proxy(hop),
                family=hop.family,
                local_addr=(hop.bind_address, 0) if hop.bind_address else None,
                known_hosts=trust(keys),
                server_host_key_algs=plain,
                host_key_alias=hop.label,
                options=_constant(settings.keepalive, settings.kept),
            )
    except TimeoutError as error:
        raise unreached.overdue(client.attempt) from error


@functools.cache
def _constant(keepalive: float, kept: int) -> asyncssh.SSHClientConnectionOptions:
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
        keepalive_interval=keepalive,
        keepalive_count_max=kept,
    )


def _proxy(hop: Hop) -> list[str] | None:
    if not hop.proxy_command:
        return None
    logging.getLogger("asyncio").addFilter(_is_news)
    return ["/bin/sh", "-c", f"exec {hop.proxy_command}"]


def _is_news(record: logging.LogRecord) -> bool:
    """Return False for what asyncio says of a child that it has reaped itself, at its close."""
    return not record.getMessage().startswith("Unknown child process pid")


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
        """Remember a key that known_hosts does not have; refuse it, unless the host is new."""
        self.attempt.shown = (key.get_algorithm(), key.public_data)
        self.attempt.accepted = self.attempt.accepts and self.attempt.keys == HostKeys()
        return self.attempt.accepted

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
