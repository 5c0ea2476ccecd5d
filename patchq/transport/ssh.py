"""The agent on a host, by asyncssh: one connection, one command, no terminal.

Host keys are always checked against known_hosts; a key is taken on trust only for a host
that has none there, and only where the user said so (accept-new).
Nothing of the user's is forwarded. asyncssh is imported by the modules of this
road only (`connect`, `identities`, here): by verbs that reach a host.
"""

from __future__ import annotations

import asyncio
import contextlib
import shlex
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

import asyncssh

from patchq.transport import bootstrap, connect, endings, pythons, route, sockets
from patchq.transport.channel import Broken, Conversation, Deadlines, Exchange
from patchq.transport.connect import Settings
from patchq.transport.endings import Ending, Place
from patchq.transport.hosts import Host
from patchq.transport.patience import Road
from patchq.transport.route import Hop

T = TypeVar("T")
V = TypeVar("V")

# How much of stdout is held for the conversation before the host is made to wait.
_HELD = 1 << 20

__all__ = ["Settings", "Think", "converse", "directly"]


class Think(Protocol):
    """What runs a step of a conversation, which may take its time: here, or in a thread."""

    async def __call__(self, step: Callable[[], V]) -> V:
        """Run `step` and return its result."""


async def directly(step: Callable[[], V]) -> V:
    """Run a step right here."""
    return step()


async def converse(
    host: Host,
    settings: Settings,
    conversation: Conversation[T],
    *,
    writing: bool = True,
    think: Think = directly,
) -> T:
    """Carry a conversation with an agent on `host`.

    `writing` is False where no request changes anything: fewer modules travel. The
    conversation is run by `think`; all else stays on the loop.

    Raises:
        HostError: the host was not reached, its agent not started, or the link lost;
            `UnknownOutcome` where a change was asked for and not answered.
        PatchqError: what the conversation raised.
    """
    nonce, become = bootstrap.nonce(), settings.become
    lines = [bootstrap.command(host.python, become, nonce, restricted=r) for r in (False, True)]
    where = f"{host.called or host} {host.python or 'python3'}"
    opening = settings.known.opening(nonce, where, become, writing=writing, packed=True)
    exchange = Exchange(conversation, nonce, opening.payload, become, met=opening.met)
    with contextlib.closing(exchange):
        hops = route.resolve(host, settings.around)
        place = _place(host, hops[-1], settings)
        first = await think(exchange.start)
        if not exchange.done:
            async with connect.connected(hops, settings) as connection:
                road = settings.road(hops)
                talk = _Talk(exchange, place, hops, connection, road, settings.deadlines, think)
                await _carry(talk, endings.Tries(place, lines, opening.source), first)
        return exchange.result


def _place(host: Host, hop: Hop, settings: Settings) -> Place:
    called = host.called or str(host)
    return Place(
        f"host {called}",
        host.python or "python3",
        see=f"{hop.ssh} true",
        remote=True,
        option=f" -H {shlex.quote(called)}",
        login=hop.ssh,
        become=settings.become,
    )


@dataclass(frozen=True, slots=True)
class _Talk:
    """A conversation and the connection that carries it."""

    exchange: Exchange[Any]
    place: Place
    hops: tuple[Hop, ...]
    connection: asyncssh.SSHClientConnection
    road: Road
    deadlines: Deadlines
    think: Think


async def _carry(talk: _Talk, tries: endings.Tries, first: bytes) -> None:
    """Carry the conversation to its end."""
    exchange, place = talk.exchange, talk.place
    ending = await _hold(talk, tries.line, first)
    while ending is not None and (again := tries.again(exchange, ending)) is not None:
        ending = await _hold(talk, tries.line, again)
    if ending is not None:
        if endings.is_without_python(place, exchange, ending):
            ending = replace(ending, pythons=await _pythons(talk))
        raise endings.failure(place, exchange, tries.told(ending))


async def _hold(talk: _Talk, line: str, first: bytes) -> Ending | None:
    """Carry the conversation by one command; return how it broke, if it did."""
    exchange, reason = talk.exchange, ""
    stream = _Stream(exchange, talk.deadlines)
    try:
        await _serve(talk, line, stream, first)
    except Broken as error:
        reason = str(error)
    except asyncio.CancelledError:
        stream.end_login()
        raise
    finally:
        talk.road.answered(stream)
        if exchange.writing and not stream.ended:
            sockets.cut(talk.hops, talk.connection)
    if exchange.done:
        return None
    await stream.leave()
    return Ending(stream.status, exchange.noise, bytes(stream.stderr), reason)


async def _pythons(talk: _Talk) -> tuple[str, ...]:
    """Return the interpreters that are there, as far as the host says."""
    nonce = bootstrap.nonce()
    with contextlib.suppress(asyncssh.Error, OSError, TimeoutError):
        async with asyncio.timeout(talk.deadlines.sync):
            done = await talk.connection.run(
                pythons.line(nonce), encoding=None, stdin=asyncssh.DEVNULL
            )
        if isinstance(done.stdout, bytes):
            return pythons.listed(done.stdout, nonce)
    return ()


async def _serve(talk: _Talk, line: str, stream: _Stream, first: bytes) -> None:
    loop = asyncio.get_running_loop()
    exchange, deadlines = talk.exchange, talk.deadlines
    until = loop.time() + deadlines.sync
    try:
        async with asyncio.timeout_at(until):
            await talk.connection.create_session(
                lambda: stream, line, encoding=None, request_pty=False
            )
    except TimeoutError as error:
        raise Broken(exchange.overdue(deadlines)) from error
    except asyncssh.Error as error:
        raise Broken(f"the host did not start the command: {error}") from error
    _send(talk, stream, first)
    while not exchange.done:
        data = await stream.receive(until)
        synced = exchange.synced
        out = b""
        if exchange.take(data):
            talk.road.answered(stream)
            out = await talk.think(exchange.advance)
            _send(talk, stream, out)
        if out or synced != exchange.synced:
            until = loop.time() + exchange.limit(deadlines)


def _send(talk: _Talk, stream: _Stream, data: bytes) -> None:
    stream.send(data)
    if data:
        talk.road.sent(stream, len(data))


class _Stream(asyncssh.SSHClientSession[bytes]):
    """The command's three streams and its status, as asyncssh hands them over."""

    def __init__(self, exchange: Exchange[T], deadlines: Deadlines) -> None:
        self.exchange, self.deadlines = exchange, deadlines
        self.status: int | None = None
        self.stderr = bytearray()
        self.ended = False
        self._channel: asyncssh.SSHClientChannel[bytes] | None = None
        self._received = bytearray()
        self._reason = ""
        self._refused: Broken | None = None
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
        if self._refused is not None:
            raise self._refused
        if self._received:
            data = bytes(self._received)
            self._received.clear()
            if self._channel is not None:
                self._channel.resume_reading()
            return data
        raise Broken(self._reason or "its output ended")

    async def leave(self) -> None:
        """End the agent's stdin and wait a little for its status; end what lingers."""
        if self._channel is None:
            return
        with contextlib.suppress(BrokenPipeError, TimeoutError):
            self._channel.write_eof()
            async with asyncio.timeout(self.deadlines.end):
                await self._gone.wait()
        self.end_login()

    def end_login(self) -> None:
        """End what the login started, where no agent has spoken and no change was asked for."""
        if self._channel is None or self.exchange.synced or self.exchange.writing:
            return
        with contextlib.suppress(OSError):  # it has ended by itself
            self._channel.send_signal("TERM")

    def connection_made(self, chan: asyncssh.SSHClientChannel[bytes]) -> None:
        """Keep the channel."""
        self._channel = chan

    def data_received(self, data: bytes, datatype: int | None) -> None:
        """Keep what came; of stderr, the end."""
        if datatype == asyncssh.EXTENDED_DATA_STDERR:
            self.stderr += data
            del self.stderr[: -endings.STDERR_KEPT]
            try:
                self.send(self.exchange.hear(data))
            except Broken as error:
                self._refused = error
                self._news.set()
        else:
            self._received += data
            self._news.set()
            # While the conversation thinks nobody takes it: the host has to wait.
            if self._channel is not None and len(self._received) > _HELD:
                self._channel.pause_reading()

    def exit_status_received(self, status: int) -> None:
        """Keep the status."""
        self.status = status

    def exit_signal_received(self, signal: str, core_dumped: bool, msg: str, lang: str) -> None:
        """Keep the signal's name."""
        self._reason = f"signal {signal} ended it"

    def eof_received(self) -> bool:
        """Tell who waits for stdout; stdin stays open."""
        self.ended = True
        self._news.set()
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell who waits that nothing more will come."""
        if exc is not None:
            self._reason = f"the connection was lost: {exc}"
        self._news.set()
        self._gone.set()
