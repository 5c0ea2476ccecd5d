"""The agent on a host, by asyncssh: one connection, one command, no terminal.

Host keys are always checked against known_hosts; a key is never taken on trust.
Nothing of the user's is forwarded. asyncssh is imported by the modules of this
road only (`connect`, `identities`, here): by verbs that reach a host.
"""

from __future__ import annotations

import asyncio
import contextlib
import shlex
from typing import TypeVar

import asyncssh

from patchq.transport import bootstrap, connect, endings, route
from patchq.transport.channel import Broken, Conversation, Deadlines, Exchange
from patchq.transport.connect import Settings
from patchq.transport.endings import Ending, Place
from patchq.transport.hosts import Host

T = TypeVar("T")

__all__ = ["Settings", "converse"]


async def converse(
    host: Host, settings: Settings, conversation: Conversation[T], *, writing: bool = True
) -> T:
    """Carry a conversation with an agent on `host`.

    `writing` is False where no request changes anything: fewer modules travel.

    Raises:
        HostError: the host was not reached, its agent not started, or the link lost;
            `UnknownOutcome` where a change was asked for and not answered.
        PatchqError: what the conversation raised.
    """
    line, nonce = bootstrap.command(host.python), bootstrap.nonce()
    exchange = Exchange(
        conversation, nonce, bootstrap.payload(nonce, writing=writing, packed=True)
    )
    hops = route.resolve(host, settings.around)
    place = Place(
        f"host {host}",
        host.python or "python3",
        see=f"{hops[-1].ssh} true",
        remote=True,
        option=f" -H {shlex.quote(str(host))}",
    )
    with contextlib.closing(exchange):
        first = exchange.start()
        if not exchange.done:
            async with connect.connected(hops, settings) as connection:
                stream = _Stream(exchange, settings.deadlines)
                await _carry(connection, line, stream, first, place)
        return exchange.result


async def _carry(
    connection: asyncssh.SSHClientConnection,
    line: str,
    stream: _Stream,
    first: bytes,
    place: Place,
) -> None:
    exchange = stream.exchange
    reason = ""
    try:
        await _serve(connection, line, stream, first)
    except Broken as error:
        reason = str(error)
    if not exchange.done:
        await stream.leave()
        ending = Ending(stream.status, exchange.noise, bytes(stream.stderr), reason)
        raise endings.failure(place, exchange, ending)


async def _serve(
    connection: asyncssh.SSHClientConnection, line: str, stream: _Stream, first: bytes
) -> None:
    loop = asyncio.get_running_loop()
    exchange, deadlines = stream.exchange, stream.deadlines
    until = loop.time() + deadlines.sync
    try:
        async with asyncio.timeout_at(until):
            await connection.create_session(lambda: stream, line, encoding=None, request_pty=False)
    except TimeoutError as error:
        raise Broken(exchange.overdue(deadlines)) from error
    except asyncssh.Error as error:
        raise Broken(f"the host did not start the command: {error}") from error
    stream.send(first)
    while not exchange.done:
        data = await stream.receive(until)
        synced = exchange.synced
        out = exchange.feed(data)
        stream.send(out)
        if out or synced != exchange.synced:
            until = loop.time() + deadlines.request


class _Stream(asyncssh.SSHClientSession[bytes]):
    """The command's three streams and its status, as asyncssh hands them over."""

    def __init__(self, exchange: Exchange[T], deadlines: Deadlines) -> None:
        self.exchange, self.deadlines = exchange, deadlines
        self.status: int | None = None
        self.stderr = bytearray()
        self._channel: asyncssh.SSHClientChannel[bytes] | None = None
        self._received = bytearray()
        self._reason = ""
        self._news = asyncio.Event()
        self._gone = asyncio.Event()

    def send(self, data: bytes) -> None:
        """Send `data`; where the link has gone, receiving tells."""
        if data and self._channel:
            with contextlib.suppress(BrokenPipeError):
                self._channel.write(data)

    async def receive(self, until: float) -> bytes:
        """Return what came on stdout.

        Raises:
            Broken: nothing came before `until` on the loop's clock, or stdout has ended.
        """
        try:
            async with asyncio.timeout_at(until):
                await self._news.wait()
        except TimeoutError as error:
            raise Broken(self.exchange.overdue(self.deadlines)) from error
        self._news.clear()
        if self._received:
            data = bytes(self._received)
            self._received.clear()
            return data
        raise Broken(self._reason or "its output ended")

    async def leave(self) -> None:
        """End the agent's stdin and wait a little for its status."""
        if self._channel is None:
            return
        with contextlib.suppress(BrokenPipeError, TimeoutError):
            self._channel.write_eof()
            async with asyncio.timeout(self.deadlines.end):
                await self._gone.wait()

    def connection_made(self, chan: asyncssh.SSHClientChannel[bytes]) -> None:
        """Keep the channel."""
        self._channel = chan

    def data_received(self, data: bytes, datatype: int | None) -> None:
        """Keep what came; of stderr, the end."""
        if datatype == asyncssh.EXTENDED_DATA_STDERR:
            self.stderr += data
            del self.stderr[: -endings.STDERR_KEPT]
        else:
            self._received += data
            self._news.set()

    def exit_status_received(self, status: int) -> None:
        """Keep the status."""
        self.status = status

    def exit_signal_received(self, signal: str, core_dumped: bool, msg: str, lang: str) -> None:
        """Keep the signal's name."""
        self._reason = f"signal {signal} ended it"

    def eof_received(self) -> bool:
        """Tell who waits for stdout; stdin stays open."""
        self._news.set()
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell who waits that nothing more will come."""
        if exc is not None:
            self._reason = f"the connection was lost: {exc}"
        self._news.set()
        self._gone.set()
