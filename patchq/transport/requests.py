"""What a verb asks an agent and what it gets: requests, replies, refusals."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from patchq import agent
from patchq.agent import protocol
from patchq.errors import ExitCode, PatchqError

# Requests that change files: when the link dies after one, nobody knows the outcome. What an
# import comes to decides whether a change stays.
WRITING_OPS = frozenset({"commit", "recover", "settle", "import"})
# How much of packed contents is kept for the other hosts of a run.
TAILS_LIMIT = 8 << 20
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


class AgentError(PatchqError):
    """The agent refused a request, and says why; nothing was changed by it."""

    def __init__(self, word: str, what: str, *, why: str, mend: str) -> None:
        super().__init__(what, why=why, mend=mend)
        self.word = word
        self.exit_code = ExitCode.CONFLICT if word in agent.CONFLICTS else ExitCode.FAILED


class TooLarge(PatchqError):
    """A request that no agent would take; nothing of it was sent."""


def frame(request: Request) -> bytes:
    """Return a request as bytes, none larger than an agent takes."""
    try:
        protocol.check_contents(sum(map(len, request.blobs.values())))
        frame = protocol.pack(request.message, request.blobs, tail(request.blobs))
        protocol.lengths(frame[: protocol.HEADER.size])
    except protocol.ProtocolError as error:
        raise TooLarge(
            f"the request {request.message.get('op')!r} is too large; it was not sent",
            why=str(error),
            mend="push or pop fewer patches at a time, such as: patchq push 100",
        ) from error
    return frame


# Packed contents by the names of what is in them.
TAILS: dict[tuple[str, ...], bytes] = {}
_packing = threading.Lock()


def tail(blobs: Mapping[str, bytes]) -> bytes:
    """Return contents packed; those of one run are packed once, they are named by hash."""
    key = tuple(blobs)
    with _packing:
        if key not in TAILS:
            data = protocol.packed(blobs)
            if len(data) > TAILS_LIMIT:
                return data
            while sum(map(len, TAILS.values())) + len(data) > TAILS_LIMIT:
                del TAILS[next(iter(TAILS))]
            TAILS[key] = data
        return TAILS[key]


def refusal(error: Mapping[str, Any], untold: Callable[[str], str] = str) -> AgentError:
    """Return an agent's refusal as an error, each part of some length at most.

    `untold` takes out of a text what nobody may see.
    """
    word, what, why, mend = (_told(error, name, untold) for name in _TOLD)
    return AgentError(
        word or "failed",
        what or "the agent refused",
        why=why or "it does not say",
        mend=mend or "patchq status",
    )


def _told(error: Mapping[str, Any], name: str, untold: Callable[[str], str]) -> str:
    value, most = error.get(name), _TOLD[name]
    text = untold(str(value)) if isinstance(value, str | int | float) else ""
    return text if len(text) <= most else text[:most] + " ..."
