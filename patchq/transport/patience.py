"""How long a link may be silent: longer while bytes of ours are on their way.

asyncssh gives a link up whose keepalives are not answered, and a keepalive waits behind
all that was written before it. So while a request is not answered, the link may be silent
for as long as its bytes take at `channel.SLOWEST`. What goes through a jump host is one
stream: each connection in it waits for the bytes of all.
"""

from __future__ import annotations

import math

import asyncssh

from patchq.transport.channel import SLOWEST


class Road:
    """The SSH connections in one stream, and the bytes that are on their way in it.

    A connection is given up after ``keepalive * (kept + 1)`` seconds of silence, and the
    seconds that the bytes take.
    """

    def __init__(self, keepalive: float, kept: int) -> None:
        self._keepalive, self._kept = keepalive, kept
        self._connections: set[asyncssh.SSHClientConnection] = set()
        self._sizes: dict[object, int] = {}
        self._most = 0

    @property
    def limit(self) -> int:
        """How many keepalives may be without an answer."""
        return self._kept + math.ceil(self._most / SLOWEST / (self._keepalive or 1))

    def join(self, connection: asyncssh.SSHClientConnection) -> None:
        """Count a connection among those in the stream."""
        self._connections.add(connection)
        connection.set_keepalive(count_max=self.limit)

    def leave(self, connection: asyncssh.SSHClientConnection) -> None:
        """Count a connection no more."""
        self._connections.discard(connection)

    def sent(self, sender: object, size: int) -> None:
        """Take notice of `size` bytes that `sender` wants answered."""
        self._sizes[sender] = self._sizes.get(sender, 0) + size
        # What is ahead of a keepalive is what was on its way when it was sent.
        self._set(max(self._most, sum(self._sizes.values())))

    def answered(self, sender: object) -> None:
        """Take notice that nothing of the sender's is on its way any more."""
        self._sizes.pop(sender, None)
        if not self._sizes:
            self._set(0)

    def _set(self, most: int) -> None:
        before, self._most = self.limit, most
        if self.limit != before:
            self._connections = {one for one in self._connections if not one.is_closed()}
            for connection in self._connections:
                connection.set_keepalive(count_max=self.limit)
