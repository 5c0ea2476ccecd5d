"""Why a conversation with an agent failed, told so that a user can mend it.

A transport knows what came of its stream: an exit status, what was printed
instead of an agent's words, what stood on stderr. Here that becomes one error.
Statuses decide, never texts: every shell words "not found" in its own way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from patchq.errors import HostError, PatchqError, UsageError
from patchq.transport import become, bootstrap
from patchq.transport.become import Become
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
    started there, as another user where `become` says so. `see` is a command by which a
    user looks for himself, `login` one that runs a command there, `option` what makes
    patchq look there again.
    """

    name: str
    python: str
    see: str
    remote: bool
    option: str = ""
    login: str = ""
    become: Become | None = None


@dataclass(frozen=True, slots=True)
class Ending:
    """What a stream left behind. `status` is None where the link ended first, or time did.

    `before` is what a first try left; `pythons` are interpreters that are there.
    """

    status: int | None = None
    noise: bytes = b""
    stderr: bytes = b""
    reason: str = ""
    before: Ending | None = None
    pythons: tuple[str, ...] = ()


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


# Statuses of shells that refuse `exec`, or a program by its path; and what they say, in any
# language, of the first. Without that it may have been sudo, which is not tried twice.
_RESTRICTED = frozenset({1, 126})
_NO_EXEC = b"exec: "


def is_restricted(place: Place, exchange: Exchange[T], ending: Ending) -> bool:
    """Return whether another try, by a line for restricted shells, may do better."""
    if exchange.synced or exchange.asked or ending.status not in _RESTRICTED:
        return False
    return place.become is None or _NO_EXEC in ending.stderr


class Tries:
    """What to try next where no agent answered, each once.

    `lines` start an agent from a login shell, and from a restricted one. `source` returns
    the payload that every interpreter takes; None where no other can be sent again.
    """

    def __init__(
        self, place: Place, lines: Sequence[str], source: Callable[[], bytes] | None
    ) -> None:
        self.place, self._lines, self._source = place, list(lines), source
        self._before: Ending | None = None

    @property
    def line(self) -> str:
        """The line to start an agent by."""
        return self._lines[0]

    def again(self, exchange: Exchange[T], ending: Ending) -> bytes | None:
        """Return what to send first in another try, by `line`; None where there is none."""
        if self._source is not None and ending.status == bootstrap.OTHER and not exchange.synced:
            source, self._source = self._source, None
            return exchange.restart(source())
        if len(self._lines) > 1 and is_restricted(self.place, exchange, ending):
            self._before = ending
            del self._lines[0]
            return exchange.restart()
        return None

    def told(self, ending: Ending) -> Ending:
        """Return how the last try ended, with how a first one did."""
        return replace(ending, before=self._before)


def is_hijacked(exchange: Exchange[T], ending: Ending) -> bool:
    """Return whether another shell got what was for the interpreter.

    fish reads all before it runs the first line, complains of what it read, and leaves with
    the status of a shell that does not find the interpreter.
    """
    if exchange.synced:
        return False
    if ending.status == bootstrap.NOT_FOUND:
        return exchange.echoed(ending.stderr)
    return ending.status == bootstrap.HIJACKED


def is_without_python(place: Place, exchange: Exchange[T], ending: Ending) -> bool:
    """Return whether it was the interpreter that is missing."""
    if exchange.synced or is_hijacked(exchange, ending):
        return False
    if place.become is not None:
        return f"sudo: {place.python}: command not found".encode() in ending.stderr
    return ending.status == bootstrap.NOT_FOUND


def failure(place: Place, exchange: Exchange[T], ending: Ending) -> PatchqError:
    """Return the error for an exchange that did not come to its end."""
    without_python = is_without_python(place, exchange, ending)
    hijacked = is_hijacked(exchange, ending)
    if place.become is not None:
        ending = _untold(place.become, ending)
    if exchange.synced:
        return _lost(place, ending, writing=exchange.writing)
    if without_python:
        message = ending.stderr or b"the command was not found"
        return absent(place, place.python, message, ending.pythons)
    if hijacked:
        return _hijacked(place)
    return _by_sudo(place, exchange, ending) or _silent(place, ending)


def absent(place: Place, name: str, message: bytes, pythons: tuple[str, ...] = ()) -> PatchqError:
    """Return the error for a program `name` that could not be started."""
    what = f"there is no interpreter {name!r} on {place.name}"
    kind = NoHostAgent if place.remote else NoInterpreter
    if name != place.python:
        return UsageError(
            f"the command {name!r} cannot be started on this machine",
            why=message.decode(errors="replace"),
            mend="patchq VERB -H 'command:ssh user@gpu1'",
        )
    mend = "name one with --python PATH"
    if pythons:
        mend = f"name one that is there: {' or '.join(f'--python {path}' for path in pythons)}"
    return kind(what, why=_quoted(message), mend=mend)


def exhausted(place: Place, error: OSError) -> PatchqError:
    """Return the error for a program that was not started since too many files are open."""
    return (NoHostAgent if place.remote else NoAgent)(
        f"no agent was started on {place.name}",
        why=f"too many files are open here: {error.strerror}",
        mend="ulimit -n 4096",
    )


def _by_sudo(place: Place, exchange: Exchange[T], ending: Ending) -> PatchqError | None:
    """Return why sudo did not start the agent, None where it was something else."""
    if place.become is None:
        return None
    if exchange.refused:
        return become.wrong(place.become, place.name)
    if ending.status == bootstrap.NOT_FOUND:
        return become.absent(place.become, place.name, place.login)
    return become.refusal(place.become, place.name, place.login, ending.stderr)


def _untold(become: Become, ending: Ending) -> Ending:
    """Return what a stream left behind without sudo's password, before any of it is quoted."""
    return replace(
        ending,
        noise=become.hidden(ending.noise),
        stderr=become.hidden(ending.stderr),
        reason=become.untold(ending.reason),
        before=_untold(become, ending.before) if ending.before else None,
        pythons=tuple(map(become.untold, ending.pythons)),
    )


def _hijacked(place: Place) -> PatchqError:
    return (NoHostAgent if place.remote else NoAgent)(
        f"no agent answered on {place.name}",
        why="a start-up file of the login shell puts another shell in the place of the command",
        mend=f"{place.see}; then make its start-up file do so only where a terminal is",
    )


def _silent(place: Place, ending: Ending) -> PatchqError:
    if ending.status == bootstrap.TOO_OLD or _is_python2(ending):
        why, mend = _too_old(place, ending)
    else:
        why, mend = _unexplained(ending), place.see
        if ending.before is not None:
            first = _unexplained(ending.before)
            same = "; so it did without `exec`"
            why = f"{first}{same}" if first == why else f"{first}; without `exec`: {why}"
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
