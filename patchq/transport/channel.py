"""The conversation with an agent, apart from what carries the bytes.

A verb is a `Conversation`: a generator that yields requests and gets replies,
and never learns whether its agent is a child process or a host. An `Exchange`
turns it into bytes to send and takes the bytes that arrive; the transports
(`local`, `command`, `ssh`) only move those. No I/O is done here.

Bytes out: the payload of `bootstrap` and the first request, in one write; then
one frame per request (`patchq.agent.protocol`). Bytes in: whatever a login shell
prints, the sync marker, then one frame per request. Behind sudo with a password
(`become`) nothing goes out before the interpreter says that it is ready.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from typing import Generic, TypeVar

from patchq.agent import protocol
from patchq.transport import requests, shape
from patchq.transport.become import Become, Door
from patchq.transport.deadlines import DEADLINES, Deadlines
from patchq.transport.requests import AgentError, Reply, Request, TooLarge

T = TypeVar("T")
__all__ = [
    "DEADLINES",
    "AgentError",
    "Broken",
    "Conversation",
    "Deadlines",
    "Exchange",
    "Reply",
    "Request",
    "TooLarge",
]

# What a login shell may print before the agent speaks; more is not a banner.
NOISE_LIMIT = 1 << 20
# Bytes in a second: a link that carries fewer is of no use.
SLOWEST = 4096
# What one host may send in a conversation; no verb asks for more.
TAKEN_LIMIT = 256 << 20
ANSWERS_LIMIT = 2_000
# A line on stderr of this length that was sent as well was not found by chance.
_ECHO = 12


Conversation = Generator[Request, Reply, T]


class Broken(Exception):
    """The stream does not carry the conversation to its end; the text says why."""


class Exchange(Generic[T]):
    """One conversation as bytes out and bytes in.

    A driver sends what `start` returns, hands what arrives to `take`, where that is
    True sends what `advance` returns, and ends when `done`. `start` and `advance` run
    the conversation, so whatever the verb raises comes out of them; so does the
    `AgentError` it did not catch. They may run in another thread than the rest, one at
    a time. What arrives on stderr goes to `hear`. `met` is told whether the agent's
    interpreter takes this one's bytecode.
    """

    def __init__(
        self,
        conversation: Conversation[T],
        nonce: bytes,
        payload: bytes,
        become: Become | None = None,
        met: Callable[[bool], None] = lambda equal: None,
    ) -> None:
        self._conversation = conversation
        self._met = met
        self._markers = (protocol.marker(nonce), protocol.marker(nonce, equal=True))
        password = become.password if become else None
        self._door = None if password is None else Door(password, nonce)
        self._untold = become.untold if become else str
        self._taken = self._answers = 0
        self._payload, self._frame = payload, b""
        self._held = b""
        self._thinking = False
        self._received = bytearray()
        self._searched = 0
        self._size = 0
        self._results: list[T] = []
        self.noise = b""
        self.synced = False
        self.waiting: Request | None = None

    @property
    def done(self) -> bool:
        """True once the conversation has returned."""
        return bool(self._results)

    @property
    def writing(self) -> bool:
        """True while a change was asked for and is not answered."""
        return self.waiting is not None and self.waiting.writes

    @property
    def result(self) -> T:
        """What the conversation returned; only once `done`."""
        return self._results[0]

    @property
    def refused(self) -> bool:
        """True where sudo did not take the password."""
        return self._door is not None and self._door.refused

    @property
    def asked(self) -> bool:
        """True once sudo asked for the password, or started without."""
        return self._door is not None and self._door.asked

    def start(self) -> bytes:
        """Return the first bytes to send: none where nothing is asked, or sudo comes first."""
        self._frame = self._advance(None)
        first = self._payload + self._frame if self._frame else b""
        if self._door is not None:
            self._held = first
            return b""
        return first

    def restart(self, payload: bytes | None = None) -> bytes:
        """Return the first bytes again, for another try where nothing of an agent came."""
        self._payload = self._payload if payload is None else payload
        assert not self.synced
        assert not self.asked
        self._received.clear()
        self._searched, self.noise = 0, b""
        return b"" if self._door is not None else self._payload + self._frame

    def feed(self, data: bytes) -> bytes:
        """Take bytes that arrived and return the bytes to send, maybe none.

        Raises:
            Broken: the bytes are not an agent's.
        """
        return self.advance() if self.take(data) else b""

    def take(self, data: bytes) -> bool:
        """Keep bytes that arrived; True where there is something for `advance` to do.

        Raises:
            Broken: the bytes are not an agent's.
        """
        self._received += data
        self._taken += len(data)
        if self._taken > TAKEN_LIMIT:
            raise Broken(f"more than {TAKEN_LIMIT >> 20} MiB came")
        if self._door is not None and not self._door.open:
            self._door.open = bool(self._found(self._door.ready))
            return self._door.open
        if not self.synced:
            marker = self._found(*self._markers)
            if marker:
                self.synced = True
                self._payload = self._frame = b""
                self._met(marker == self._markers[1])
        return self.synced and self._whole() > 0

    def advance(self) -> bytes:
        """Run the conversation on what came; return the bytes to send, maybe none.

        Raises:
            Broken: the bytes are not an agent's.
        """
        out, self._held = self._held, b""
        while self.synced and not self.done and (reply := self._take()) is not None:
            out += self._advance(reply)
        return out

    def hear(self, stderr: bytes) -> bytes:
        """Take what came on stderr; return what to send: the password, once, or nothing.

        Raises:
            Broken: sudo asked again.
        """
        if self._door is None or self._door.refused:
            return b""
        out = self._door.hear(stderr)
        if self._door.refused:
            raise Broken("sudo asked for the password again")
        return out

    def limit(self, deadlines: Deadlines) -> float:
        """Return how many seconds what was sent last may take."""
        return deadlines.request + self._size // SLOWEST if self.synced else deadlines.sync

    def echoed(self, stderr: bytes) -> bool:
        """Return whether what stands on stderr quotes what was sent, which is not for a shell."""
        lines = [line.strip() for line in stderr.splitlines()]
        # fish has the bytes that are no text as characters of its own.
        sent = self._payload + self._frame
        quoted = [re.sub(rb"\xef[\x98-\x9b][\x80-\xbf]", _byte_of_fish, line) for line in lines]
        return any(len(line) >= _ECHO and line in sent for line in lines + quoted)

    def overdue(self, deadlines: Deadlines) -> str:
        """Return what did not come in time, for an error."""
        if self._door is not None and not self._door.open:
            return f"sudo did not start an interpreter within {deadlines.sync:g} s"
        if not self.synced:
            return f"nothing of an agent came within {deadlines.sync:g} s"
        operation = self.waiting.message.get("op") if self.waiting else ""
        return f"no answer to {operation!r} came within {self.limit(deadlines):g} s"

    def close(self) -> None:
        """End a conversation that the link did not carry to its end.

        One that another thread runs right now ends with the last reference to it.
        """
        if not self._thinking:
            self._conversation.close()

    def _found(self, *markers: bytes) -> bytes:
        """Skip what stands before one of markers of one length; return it, or nothing yet."""
        size = len(markers[0])
        at = max(self._received.find(marker, self._searched) for marker in markers)
        self._searched = max(0, len(self._received) - size)
        self.noise = bytes(self._received[: at if at >= 0 else NOISE_LIMIT])
        if at < 0:
            if len(self._received) > NOISE_LIMIT:
                raise Broken(f"more than {NOISE_LIMIT >> 20} MiB came and no agent spoke")
            return b""
        marker = bytes(self._received[at : at + size])
        del self._received[: at + size]
        self._searched = 0
        return marker

    def _whole(self) -> int:
        """Return the length of the frame that has come, 0 where it has not."""
        size = protocol.HEADER.size
        if len(self._received) < size:
            return 0
        try:
            end = size + sum(protocol.lengths(self._received[:size]))
        except protocol.ProtocolError as error:
            raise Broken(f"its answer is not taken: {error}") from error
        return end if len(self._received) >= end else 0

    def _take(self) -> Reply | None:
        size = protocol.HEADER.size
        if not (end := self._whole()):
            return None
        try:
            head, _ = protocol.lengths(self._received[:size])
            # Not copied: an answer may be large. What follows it is next to nothing.
            whole, self._received = self._received, self._received[end:]
            frame = memoryview(whole)
            message, blobs = protocol.unpack(frame[size : size + head], frame[size + head : end])
        except protocol.ProtocolError as error:
            raise Broken(f"its answer is not taken: {error}") from error
        reply = Reply(message, blobs)
        if (fault := self._fault(reply)) is not None:
            raise Broken(f"its answer is not taken: {fault}")
        return reply

    def _fault(self, reply: Reply) -> str | None:
        """Return what is wrong with an answer, None where a verb can read it."""
        self._answers += 1
        if self._answers > ANSWERS_LIMIT:
            return f"more than {ANSWERS_LIMIT} came"
        if "error" in reply.message:
            return None if isinstance(reply.message["error"], dict) else "`error` is no object"
        if not isinstance(reply.message.get("ok"), dict):
            return "`ok` is no object" if "ok" in reply.message else "it has no `ok` or `error`"
        question = self.waiting.message if self.waiting else {}
        return shape.fault(question, reply.message["ok"], reply.blobs)

    def _advance(self, reply: Reply | None) -> bytes:
        self.waiting = None
        self._thinking = True
        try:
            if reply is None:
                request = next(self._conversation)
            elif "error" in reply.message:
                error = requests.refusal(reply.message["error"], self._untold)
                request = self._conversation.throw(error)
            else:
                request = self._conversation.send(reply)
        except StopIteration as stop:
            self._results.append(stop.value)
            return b""
        finally:
            self._thinking = False
        frame = requests.frame(request)
        self.waiting, self._size = request, len(frame)
        return frame


def _byte_of_fish(found: re.Match[bytes]) -> bytes:
    return bytes([ord(found[0].decode()) & 0xFF])
