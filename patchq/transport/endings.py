"""Why a conversation with an agent failed, told so that a user can mend it.

A transport knows what came of its stream: an exit status, what was printed
instead of an agent's words, what stood on stderr. Here that becomes one error.
Statuses decide, never texts: every shell words "not found" in its own way.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from patchq.errors import HostError, PatchqError, UsageError
from patchq.transport import bootstrap
from patchq.transport.channel import Exchange

T = TypeVar("T")

# How much of what a host printed is quoted in an error.
QUOTED = 200
# How much of stderr is kept: its end, where the reason is.
STDERR_KEPT = 64 * 1024


@dataclass(frozen=True, slots=True)
class Place:
    """Where an agent runs, as errors name it.

    `name` reads on after "on": ``host gpu1``, ``this machine``. `python` is what was
    started there. `see` is a command by which a user looks for himself, `option` what
    makes patchq look there again.
    """

    name: str
    python: str
    see: str
    remote: bool
    option: str = ""


@dataclass(frozen=True, slots=True)
class Ending:
    """What a stream left behind. `status` is None where the link ended first, or time did."""

    status: int | None = None
    noise: bytes = b""
    stderr: bytes = b""
    reason: str = ""


class NoInterpreter(UsageError):
    """The interpreter named for this machine cannot be started."""


class NoAgent(PatchqError):
    """No agent answered from a child process."""


class NoHostAgent(HostError):
    """A host was reached, but no agent answered from there."""


class AgentLost(PatchqError):
    """The agent of a child process ended within the conversation."""


class LinkLost(HostError):
    """A host's agent ended within the conversation, or the link to it."""


class UnknownOutcome(HostError):
    """The link ended after a change was asked for and before it was answered."""


def failure(place: Place, exchange: Exchange[T], ending: Ending) -> PatchqError:
    """Return the error for an exchange that did not come to its end."""
    if exchange.synced:
        return _lost(place, ending, writing=exchange.writing)
    return _silent(place, ending)


def absent(place: Place, name: str, message: bytes) -> PatchqError:
    """Return the error for a program `name` that could not be started."""
    what = f"there is no interpreter {name!r} on {place.name}"
    kind = NoHostAgent if place.remote else NoInterpreter
    if name != place.python:
        return UsageError(
            f"the command {name!r} cannot be started on this machine",
            why=message.decode(errors="replace"),
            mend="name a command that reaches the host, such as: -H 'command:ssh HOST'",
        )
    return kind(what, why=_quoted(message), mend="name one with --python PATH")


def _silent(place: Place, ending: Ending) -> PatchqError:
    if ending.status == bootstrap.NOT_FOUND:
        return absent(place, place.python, ending.stderr or b"the command was not found")
    if ending.status == bootstrap.TOO_OLD or _is_python2(ending):
        why, mend = _too_old(place, ending)
    elif ending.status == bootstrap.HIJACKED:
        why = "a start-up file of the login shell puts another shell in the place of the command"
        mend = f"{place.see}; then make its start-up file do so only where a terminal is"
    else:
        why, mend = _unexplained(ending), place.see
    error = NoHostAgent if place.remote else NoAgent
    return error(f"no agent answered on {place.name}", why=why, mend=mend)


def _lost(place: Place, ending: Ending, *, writing: bool) -> PatchqError:
    why = _unexplained(ending)
    if writing:
        return (UnknownOutcome if place.remote else AgentLost)(
            f"the agent on {place.name} was lost within a change; its outcome is not known",
            why=f"{why}; what was asked for is done whole, or not at all",
            mend=f"patchq status{place.option}",
        )
    return (LinkLost if place.remote else AgentLost)(
        f"the agent on {place.name} was lost; it had not been asked to change anything",
        why=why,
        mend=place.see,
    )


def _too_old(place: Place, ending: Ending) -> tuple[str, str]:
    found = _quoted(ending.stderr.split(b"\n")[0]) or "an older one"
    oldest = ".".join(map(str, bootstrap.OLDEST))
    return (
        f"Python {oldest} or later is needed, and {place.python!r} is not: {found}",
        "name a newer one with --python PATH",
    )


def _is_python2(ending: Ending) -> bool:
    # Python 2 knows no -I: status 2 and its usage. A shell's status 2 has no "-I".
    return ending.status == 2 and b"Unknown option: -I" in ending.stderr


def _unexplained(ending: Ending) -> str:
    parts = [ending.reason] if ending.reason else []
    if ending.status is not None and ending.status < 0:
        parts.append(f"signal {-ending.status} ended it")
    elif ending.status is not None:
        parts.append(f"it ended with status {ending.status}")
    if ending.noise:
        parts.append(f"instead of an agent's words came {_quoted(ending.noise)}")
    if ending.stderr.strip():
        parts.append(f"on stderr stood {_quoted(ending.stderr, end=True)}")
    return "; ".join(parts) or "the stream ended"


def _quoted(data: bytes, *, end: bool = False) -> str:
    data = data.strip()
    if not data:
        return ""
    part = data[-QUOTED:] if end else data[:QUOTED]
    return repr(part.decode(errors="backslashreplace"))
