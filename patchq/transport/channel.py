"""The conversation with an agent, apart from what carries the bytes.

A verb is a `Conversation`: a generator that yields requests and gets replies,
and never learns whether its agent is a child process or a host. An `Exchange`
turns it into bytes to send and takes the bytes that arrive; the transports
(`local`, `command`, `ssh`) only move those. No I/O is done here.

Bytes out: the payload of `bootstrap` and the first request, in one write; then
one frame per request (`patchq.agent.protocol`). Bytes in: whatever a login shell
prints, the sync marker, then one frame per request.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from patchq import agent
from patchq.agent import protocol
from patchq.errors import ExitCode, PatchqError
from patchq.transport import shape

T = TypeVar("T")

# What a login shell may print before the agent speaks; more is not a banner.
NOISE_LIMIT = 1 << 20
# Requests that change files: when the link dies after one, nobody knows the outcome.
WRITING_OPS = frozenset({"commit", "recover"})
# How much of an agent's refusal is told; its `why` may be a traceback of some length.
_TOLD = {"word": 100, "what": 2_000, "why": 20_000, "mend": 2_000}


@dataclass(frozen=True, slots=True)
class Request:
    """What a verb asks the agent; `blobs` maps sha256 to contents that travel along."""

    message: Mapping[str, Any]
    blobs: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def writes(self) -> bool:
        """True where the agent may change files before it answers."""
        return self.message.get("op") in WRITING_OPS


@dataclass(frozen=True, slots=True)
class Reply:
    """What the agent answered; `message` holds ``ok``, `blobs` maps sha256 to contents."""

    message: Mapping[str, Any]
    blobs: Mapping[str, bytes] = field(default_factory=dict)


Conversation = Generator[Request, Reply, T]


@dataclass(frozen=True, slots=True)
class Deadlines:
    """How long each phase may take, in seconds.

    `connect` and `login` are a host's. `sync`: from the start of the command to the
    agent's first word. `request`: each request, to the last byte of its answer.
    `end`: from the last word to the end of a child.
    """

    connect: float = 10
    login: float = 20
    sync: float = 15
    request: float = 300
    end: float = 3


DEADLINES = Deadlines()


class AgentError(PatchqError):
    """The agent refused a request, and says why; nothing was changed by it."""

    def __init__(self, word: str, what: str, *, why: str, mend: str) -> None:
        super().__init__(what, why=why, mend=mend)
        self.word = word
        self.exit_code = ExitCode.CONFLICT if word in agent.CONFLICTS else ExitCode.FAILED


class TooLarge(PatchqError):
    """A request that no agent would take; nothing of it was sent."""


class Broken(Exception):
    """The stream does not carry the conversation to its end; the text says why."""


class Exchange(Generic[T]):
    """One conversation as bytes out and bytes in.

    A driver sends what `start` returns, hands what arrives to `feed`, sends what
    that returns, and ends when `done`. `feed` runs the conversation, so whatever
    the verb raises comes out of it; so does the `AgentError` it did not catch.
    """

    def __init__(self, conversation: Conversation[T], nonce: bytes, payload: bytes) -> None:
        self._conversation = conversation
        self._marker = protocol.marker(nonce)
        self._payload = payload
        self._received = bytearray()
        self._searched = 0
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

    def start(self) -> bytes:
        """Return the first bytes to send; empty where the conversation asks nothing."""
        frame = self._advance(None)
        return self._payload + frame if frame else b""

    def feed(self, data: bytes) -> bytes:
        """Take bytes that arrived and return the bytes to send, maybe none.

        Raises:
            Broken: the bytes are not an agent's.
        """
        self._received += data
        if not self.synced and not self._sync():
            return b""
        out = b""
        while not self.done and (reply := self._take()) is not None:
            out += self._advance(reply)
        return out

    def overdue(self, deadlines: Deadlines) -> str:
        """Return what did not come in time, for an error."""
        if not self.synced:
            return f"nothing of an agent came within {deadlines.sync:g} s"
        operation = self.waiting.message.get("op") if self.waiting else ""
        return f"no answer to {operation!r} came within {deadlines.request:g} s"

    def close(self) -> None:
        """End a conversation that the link did not carry to its end."""
        self._conversation.close()

    def _sync(self) -> bool:
        at = self._received.find(self._marker, self._searched)
        self._searched = max(0, len(self._received) - len(self._marker))
        self.noise = bytes(self._received[: at if at >= 0 else NOISE_LIMIT])
        if at < 0:
            if len(self._received) > NOISE_LIMIT:
                raise Broken(f"more than {NOISE_LIMIT >> 20} MiB came and no agent spoke")
            return False
        del self._received[: at + len(self._marker)]
        self.synced = True
        return True

    def _take(self) -> Reply | None:
        size = protocol.HEADER.size
        if len(self._received) < size:
            return None
        try:
            head, tail = protocol.lengths(self._received[:size])
            end = size + head + tail
            if len(self._received) < end:
                return None
            # Not copied: an answer may be large. What follows it is next to nothing.
            whole, self._received = self._received, self._received[end:]
            frame = memoryview(whole)
            message, blobs = protocol.unpack(frame[size : size + head], frame[size + head : end])
        except protocol.ProtocolError as error:
            raise Broken(f"its answer is not taken: {error}") from error
        reply = Reply(message, blobs)
        fault = self._fault(reply)
        if fault is not None:
            raise Broken(f"its answer is not taken: {fault}")
        return reply

    def _fault(self, reply: Reply) -> str | None:
        """Return what is wrong with an answer, None where a verb can read it."""
        if "error" in reply.message:
            return None if isinstance(reply.message["error"], dict) else "`error` is no object"
        if not isinstance(reply.message.get("ok"), dict):
            return "`ok` is no object" if "ok" in reply.message else "it has no `ok` or `error`"
        question = self.waiting.message if self.waiting else {}
        return shape.fault(question, reply.message["ok"], reply.blobs)

    def _advance(self, reply: Reply | None) -> bytes:
        self.waiting = None
        try:
            if reply is None:
                request = next(self._conversation)
            elif "error" in reply.message:
                request = self._conversation.throw(_refusal(reply.message["error"]))
            else:
                request = self._conversation.send(reply)
        except StopIteration as stop:
            self._results.append(stop.value)
            return b""
        frame = _frame(request)
        self.waiting = request
        return frame


def _frame(request: Request) -> bytes:
    """Return a request as bytes, none larger than an agent takes."""
    try:
        protocol.check_contents(sum(map(len, request.blobs.values())))
        frame = protocol.pack(request.message, request.blobs)
        protocol.lengths(frame[: protocol.HEADER.size])
    except protocol.ProtocolError as error:
        raise TooLarge(
            f"the request {request.message.get('op')!r} is too large; it was not sent",
            why=str(error),
            mend="push or pop fewer patches at a time, such as: patchq push 100",
        ) from error
    return frame


def _refusal(error: Mapping[str, Any]) -> AgentError:
    word, what, why, mend = (_told(error, name) for name in _TOLD)
    return AgentError(
        word or "failed",
        what or "the agent refused",
        why=why or "it does not say",
        mend=mend or "patchq status",
    )


def _told(error: Mapping[str, Any], name: str) -> str:
    value, most = error.get(name), _TOLD[name]
    text = str(value) if isinstance(value, str | int | float) else ""
    return text if len(text) <= most else text[:most] + " ..."
