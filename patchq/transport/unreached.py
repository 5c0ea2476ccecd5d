"""Why a host was not reached, told so that a user can mend it."""

from __future__ import annotations

import shlex
import socket
from dataclasses import dataclass, field

import asyncssh

from patchq.errors import HostError
from patchq.transport import hostkeys, regular
from patchq.transport.hostkeys import HostKeys
from patchq.transport.route import Hop


class HostUnreachable(HostError):
    """No connection came about: name, network, port, or a server that says nothing."""


class AuthenticationRefused(HostError):
    """The host takes none of the keys that were offered for the user."""


@dataclass(slots=True)
class Attempt:
    """One attempt to connect and how far it came; seconds are its deadlines.

    `shown` is the host's key, algorithm and blob, where known_hosts does not have it: it is
    `accepted` where the attempt `accepts` new hosts and this is one. `offered` are the
    user's keys, in words.
    """

    hop: Hop
    keys: HostKeys
    connect: float
    login: float
    connected: bool = False
    authenticating: bool = False
    accepts: bool = False
    accepted: bool = False
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
    return _unreachable(attempt, why)


def error(attempt: Attempt, error: Exception, notes: tuple[str, ...]) -> HostError:
    """Return the error for an attempt that ended in `error`, one of asyncssh or the system.

    `notes` say which keys of the user's could not be used.
    """
    if isinstance(error, asyncssh.HostKeyNotVerifiable):
        return key_refused(attempt, str(error))
    if isinstance(error, asyncssh.KeyExchangeFailed) and "host key" in str(error):
        known = attempt.keys.trusted + attempt.keys.authorities
        types = ", ".join(sorted({entry.algorithm for entry in known})) or "no key"
        return key_refused(
            attempt, f"known_hosts has {types} of it, and it shows another: {error}"
        )
    if regular.is_exhausted(error) or regular.is_exhausted(error.__cause__ or error):
        return _unreachable(attempt, f"too many files are open here: {error}", "ulimit -n 4096")
    lost = isinstance(error, ConnectionResetError | asyncssh.ConnectionLost)
    if attempt.authenticating and not lost:
        return login_refused(attempt, error, notes)
    return failed(attempt, error)


def failed(attempt: Attempt, error: Exception) -> HostError:
    """Return the error for a connection that did not come about."""
    hop = attempt.hop
    where = f"{hop.name} port {hop.port}"
    if isinstance(error, socket.gaierror):
        return _unreachable(
            attempt, f"there is no host {hop.name!r}: {error.strerror}", f"getent hosts {hop.name}"
        )
    if isinstance(error, UnicodeError):
        why = f"no host can have the name {hop.name!r}: parts between dots have 1 to 63 characters"
        return _unreachable(attempt, why, f"ssh -G {shlex.quote(hop.alias)}")
    if isinstance(error, ConnectionRefusedError):
        return _unreachable(attempt, f"nothing listens there: {where} refused the connection")
    if attempt.dropped:
        return _unreachable(attempt, f"{where} dropped the connection before the login: {error}")
    return _unreachable(attempt, f"{where}: {error}")


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
        why=f"{error}; {'offered: ' if attempt.offered else ''}{offered}{_unheeded(hop)}",
        mend=mend,
    )


def _unreachable(attempt: Attempt, why: str, mend: str = "") -> HostUnreachable:
    hop = attempt.hop
    return HostUnreachable(
        f"{hop.alias} cannot be reached",
        # Of a host that nothing was heard of, no option is to blame.
        why=f"{why}{_unheeded(hop) if attempt.connected else ''}",
        mend=mend or f"{hop.ssh} -v true",
    )


def _unheeded(hop: Hop) -> str:
    """Return what ssh(1) would do in another way, to go on in a reason with."""
    if not hop.suspects:
        return ""
    return (
        f"; ssh_config sets {', '.join(hop.suspects)} for it, which patchq's own SSH does not "
        f"honour; ssh(1) does: -H 'command:ssh {hop.alias}'"
    )


def _port(hop: Hop) -> str:
    return "" if hop.port == 22 else f" -p {hop.port}"
