"""How a run over many hosts ended: one word for each host, and the shell's one number."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from patchq.errors import ConflictError, ExitCode, HostError, PatchqError
from patchq.report import Report
from patchq.transport.channel import AgentError
from patchq.transport.endings import LinkLost, UnknownOutcome

# What an agent says where something broke; its other words are refusals.
_BROKEN = frozenset(
    {
        "bug",
        "os-error",
        "failed",
        "no-space",
        "disk",
        "no-memory",
        "too-many-files",
        "another-disk",
    }
)


class Word(enum.Enum):
    """How a host ended: its conversation, and in a rollout its gate.

    "taken back": changed by this run, and put back, since it failed its gate, or a host did
    that moves together with it. "not begun": an earlier failure or ^C stopped the run.
    """

    DONE = "done"
    NOTHING = "nothing to do"
    TAKEN_BACK = "taken back"
    CONFLICT = "conflict"
    REFUSED = "refused"
    FAILED = "failed"
    UNREACHABLE = "unreachable"
    UNKNOWN = "unknown"
    NOT_BEGUN = "not begun"


@dataclass(frozen=True, slots=True)
class Outcome:
    """One host's end: a report, or the error that came instead; in a rollout its wave."""

    host: str
    word: Word
    report: Report | None = None
    error: PatchqError | None = None
    wave: int | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """How a run ended: an outcome for each host, in the order in which they were named."""

    outcomes: tuple[Outcome, ...]
    notes: tuple[str, ...] = ()
    interrupted: bool = False


def named(outcomes: Sequence[Outcome]) -> tuple[Outcome, ...]:
    """Return outcomes in which a host that is on another's tree names that one.

    Its report has ``same_as``: the id of a change, which the other's receipt has, too.
    """
    makers = {
        receipt["id"]: one.host
        for one in outcomes
        if one.report and isinstance(receipt := one.report.document.get("receipt"), dict)
    }
    return tuple(_naming(one, makers) for one in outcomes)


def _naming(one: Outcome, makers: Mapping[str, str]) -> Outcome:
    host = makers.get(str(one.report.document.get("same_as"))) if one.report else None
    if one.report is None or host is None:
        return one
    message = f"same environment as {host}"
    document = {**one.report.document, "message": message, "same_as": host}
    return replace(one, report=replace(one.report, notes=(message,), document=document))


class Stopped(HostError):
    """The user stopped the run before this host was asked to change anything."""


class NotDone(HostError):
    """A change did not come about: the link was lost before the host began with it."""


def word_of(report: Report) -> Word:
    """Return the word for a host that answered."""
    words = {ExitCode.NOTHING_TO_DO: Word.NOTHING, ExitCode.CONFLICT: Word.CONFLICT}
    off = report.document.get("taken_off")
    if off is not None:  # a push whose import failed
        return Word.TAKEN_BACK if off else Word.FAILED
    if report.exit_code is ExitCode.FAILED and report.document.get("conflicts"):
        return Word.REFUSED
    return words.get(report.exit_code, Word.DONE)


def word_for(error: PatchqError) -> Word:
    """Return the word for a host whose conversation ended in an error."""
    if isinstance(error, UnknownOutcome):
        return Word.UNKNOWN
    if isinstance(error, LinkLost | Stopped | NotDone):
        return Word.FAILED
    if isinstance(error, HostError):
        return Word.UNREACHABLE
    if isinstance(error, ConflictError) or error.exit_code is ExitCode.CONFLICT:
        return Word.CONFLICT
    if isinstance(error, AgentError) and error.word in _BROKEN:
        return Word.FAILED
    return Word.REFUSED


def exit_code(outcomes: Iterable[Outcome]) -> ExitCode:
    """Return what the shell is told of several hosts: 4 before 3 before 1 before 5.

    Hosts that have nothing to do are where they should be: 0. Those that were not begun have
    no number of their own: why they were not has one.
    """
    found = set()
    for one in outcomes:
        code = one.report.exit_code if one.report else None
        found.add(_CODES.get(one.word) or code or ExitCode.DONE)
    order = (ExitCode.HOST_FAILED, ExitCode.CONFLICT, ExitCode.FAILED, ExitCode.FINDING)
    return next((code for code in order if code in found), ExitCode.DONE)


_CODES = {
    Word.FAILED: ExitCode.HOST_FAILED,
    Word.TAKEN_BACK: ExitCode.HOST_FAILED,
    Word.UNREACHABLE: ExitCode.HOST_FAILED,
    Word.UNKNOWN: ExitCode.HOST_FAILED,
    Word.CONFLICT: ExitCode.CONFLICT,
    Word.REFUSED: ExitCode.FAILED,
}
