"""What the connections of a run share: jump hosts, and a turn at each sshd.

A jump host is logged into once per run, by whoever comes first; the others wait for the
same connection. One that was lost is opened anew for the next. One that could not be
opened stays so for the run: a thousand hosts must not knock a thousand times.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

import asyncssh

from patchq.errors import PatchqError
from patchq.transport.patience import Road
from patchq.transport.route import Hop

# Logins at one sshd at once; it begins to drop at ten (MaxStartups).
LOGINS = 8

_Hops = tuple[Hop, ...]
_Connect = Callable[[_Hops], Awaitable[asyncssh.SSHClientConnection]]


class Links:
    """The shared connections of one run, kept while somebody uses them."""

    def __init__(self) -> None:
        self._jumps: dict[_Hops, asyncio.Task[asyncssh.SSHClientConnection]] = {}
        self._turns: dict[tuple[str, int], asyncio.Semaphore] = {}
        self._roads: dict[Hop, Road] = {}
        self._users = 0

    def turn(self, hop: Hop) -> asyncio.Semaphore:
        """Return what to hold while one logs into the sshd of `hop`."""
        return self._turns.setdefault((hop.name, hop.port), asyncio.Semaphore(LOGINS))

    def road(self, hops: _Hops, keepalive: float, kept: int) -> Road:
        """Return the stream that leads over these hops: one for all behind the same jump."""
        return self._roads.setdefault(replace(hops[0], alias=""), Road(keepalive, kept))

    async def through(self, hops: _Hops, connect: _Connect) -> asyncssh.SSHClientConnection | None:
        """Return the connection to the last of these jumps, None where there is none.

        Raises:
            HostError: the jump cannot be reached; each who asks gets one of his own.
        """
        if not hops:
            return None
        key = tuple(replace(hop, alias=hop.name) for hop in hops)
        task = self._jumps.get(key)
        if task is None or _is_lost(task):
            task = self._jumps[key] = asyncio.ensure_future(_run(connect, hops))
        try:
            return await asyncio.shield(task)
        except PatchqError as error:
            raise type(error)(error.what, why=error.why, mend=error.mend) from error

    def enter(self) -> None:
        """Count one more user."""
        self._users += 1

    async def leave(self) -> None:
        """Count one user less; the last closes all."""
        self._users -= 1
        if self._users <= 0:
            await self.close()

    async def close(self) -> None:
        """Close the connections to all jumps."""
        tasks, self._jumps = [*self._jumps.items()], {}
        self._turns.clear()
        self._roads.clear()
        for _, task in tasks:
            task.cancel()
        opened = await asyncio.gather(*(task for _, task in tasks), return_exceptions=True)
        for (hops, _), connection in reversed([*zip(tasks, opened, strict=True)]):
            if isinstance(connection, asyncssh.SSHClientConnection):
                await end(hops[-1], connection)


async def end(hop: Hop, connection: asyncssh.SSHClientConnection) -> None:
    """Close a connection.

    No wait for the other side's goodbye: all it had to say has been said. A ProxyCommand
    is a child of ours, and is waited for.
    """
    connection.close()
    if hop.proxy_command:
        await connection.wait_closed()


async def _run(connect: _Connect, hops: _Hops) -> asyncssh.SSHClientConnection:
    return await connect(hops)


def _is_lost(task: asyncio.Task[asyncssh.SSHClientConnection]) -> bool:
    if not task.done():
        return False
    return task.cancelled() or (task.exception() is None and task.result().is_closed())
