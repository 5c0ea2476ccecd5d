"""Why a host was not reached, told so that a user can mend it."""

from __future__ import annotations

import shlex
import socket
from dataclasses import dataclass, field

from patchq.errors import HostError
from patchq.transport import hostkeys
from patchq.transport.hostkeys import HostKeys
from patchq.transport.route import Hop


class HostUnreachable(HostError):
    """No connection came about: name, network, port, or a server that says nothing."""


class AuthenticationRefused(HostError):
    """The host takes none of the keys that were offered for the user."""


@dataclass(slots=True)
class Attempt:
    """One attempt to connect and how far it came; seconds are its deadlines.

    `shown` is the host's key, algorithm and blob, where it was not accepted;
    `offered` the user's keys, in words.
    """

    hop: Hop
    keys: HostKeys
    connect: float
    login: float
    connected: bool = False
    authenticating: bool = False
    shown: tuple[str, bytes] | None = None
    offered: list[str] = field(default_factory=list)

    @property
    def dropped(self) -> bool:
        """True where the connection stood, and nobody had been asked who he is."""
        return self.connected and not self.authenticating


def overdue(attempt: Attempt) -> HostError:
    """Return the error for an attempt that took too long."""
    hop = attempt.hop
    where = f"{hop.name} port {hop.port}"
    if attempt.authenticating:
        why = f"{where} did not end the login within {attempt.login:g} s"
    elif attempt.connected:
        why = f"{where} took the connection, and no SSH came of it within {attempt.login:g} s"
    else:
        why = f"{where} did not answer within {attempt.connect:g} s"
    return _unreachable(hop, why)


def failed(attempt: Attempt, error: Exception) -> HostError:
    """Return the error for a connection that did not come about."""
    hop = attempt.hop
    where = f"{hop.name} port {hop.port}"
    if isinstance(error, socket.gaierror):
        return _unreachable(
            hop, f"there is no host {hop.name!r}: {error.strerror}", f"getent hosts {hop.name}"
        )
    if isinstance(error, ConnectionRefusedError):
        return _unreachable(hop, f"nothing listens there: {where} refused the connection")
    if attempt.dropped:
        return _unreachable(hop, f"{where} dropped the connection before the login: {error}")
    return _unreachable(hop, f"{where}: {error}")


def key_refused(attempt: Attempt, reason: str) -> HostError:
    """Return the error for a host whose key is not accepted; `reason` is asyncssh's."""
    if attempt.shown is not None:
        return hostkeys.refusal(attempt.hop, attempt.keys, *attempt.shown)
    if attempt.keys.revoked and "revoked" in reason:
        return hostkeys.revoked(attempt.hop, attempt.keys.revoked)
    return hostkeys.HostKeyUnknown(
        f"the host key of {attempt.hop.alias} is not accepted",
        why=reason,
        mend=f"{attempt.hop.ssh} -v true",
    )


def login_refused(attempt: Attempt, error: Exception, notes: tuple[str, ...]) -> HostError:
    """Return the error for a user who is not let in; `notes` say which keys could not be used."""
    hop = attempt.hop
    offered = "; ".join((", ".join(attempt.offered) or "no key was offered", *notes))
    mend = f"ssh-copy-id{_port(hop)} {hop.user}@{hop.name}"
    if not attempt.offered:
        mend = f"ssh-add {shlex.quote(str(hop.identities[0]))}" if hop.identities else "ssh-add"
    return AuthenticationRefused(
        f"{hop.alias} does not let {hop.user} in",
        why=f"{error}; offered: {offered}" if attempt.offered else f"{error}; {offered}",
        mend=mend,
    )


def _unreachable(hop: Hop, why: str, mend: str = "") -> HostUnreachable:
    return HostUnreachable(
        f"{hop.alias} cannot be reached", why=why, mend=mend or f"{hop.ssh} -v true"
    )


def _port(hop: Hop) -> str:
    return "" if hop.port == 22 else f" -p {hop.port}"
