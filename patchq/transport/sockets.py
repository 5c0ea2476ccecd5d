"""What the kernel is told of the socket of an SSH connection.

A connection through a jump host, or a ProxyCommand, has no socket of its own.
"""

from __future__ import annotations

import contextlib
import socket
import struct

import asyncssh

from patchq.transport.route import Hop


def cut(hops: tuple[Hop, ...], connection: asyncssh.SSHClientConnection) -> None:
    """End a connection so that nothing more of what was written reaches the host.

    The kernel would go on with what it has, also long after: it is told to drop it. Behind
    a jump the socket is the jump's, which others use: there the channel is closed.
    """
    _tell(hops, connection, socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.abort()


def watch(hops: tuple[Hop, ...], connection: asyncssh.SSHClientConnection, silence: float) -> None:
    """Let a connection end where nothing of what was written arrives for `silence` seconds.

    The kernel knows sooner than keepalives do, which wait behind a large request.
    """
    if hasattr(socket, "TCP_USER_TIMEOUT"):  # Linux
        number = int(1000 * silence)
        _tell(hops, connection, socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, number)


def _tell(
    hops: tuple[Hop, ...],
    connection: asyncssh.SSHClientConnection,
    level: int,
    option: int,
    value: int | bytes,
) -> None:
    sock = connection.get_extra_info("socket")
    if sock is not None and len(hops) == 1 and not hops[0].proxy_command:
        with contextlib.suppress(OSError):
            sock.setsockopt(level, option, value)
