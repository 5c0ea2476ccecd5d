"""The values of an audit: a case in, a finding out."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from patchq import standing
from patchq.model import AppliedPatch, FileState, Lock, Survey


class Word(enum.Enum):
    """What is said of one queue in one environment."""

    CURRENT = "current"
    BEHIND = "behind"
    PARTIAL = "partial"
    MISSING = "missing"
    DRIFTED = "drifted"
    INTERRUPTED = "interrupted"
    ORPHANED = "orphaned"
    UNRECORDED = "unrecorded"
    UNMANAGED = "unmanaged"
    UNKNOWN = "unknown"
    UPSTREAM = "upstream"
    NO_SERIES = "no series"
    ABSENT = "absent"

    @property
    def settled(self) -> bool:
        """True where the word says how far a recorded stack is from today's series."""
        return self in (Word.CURRENT, Word.PARTIAL, Word.BEHIND, Word.UNKNOWN)

    def good(self, wanted: bool) -> bool:
        """Return whether an audit ends well with this word; `wanted`: the queue was named."""
        if self in (Word.ABSENT, Word.MISSING):
            return not wanted
        return self in (Word.CURRENT, Word.UPSTREAM)


@dataclass(frozen=True, slots=True)
class Receipt:
    """What the ledger's last receipt says; `applied` are (queue, patch, sha256) it left on."""

    id: str
    time: str
    verb: str
    who: str
    whence: str
    commit: str | None
    dirty: bool
    applied: tuple[tuple[str, str, str], ...]

    def to_json(self) -> dict[str, object]:
        """Return it as a row has it; what it left on is in the row itself."""
        names = ("id", "time", "verb", "who", "whence", "commit", "dirty")
        return {name: getattr(self, name) for name in names}

    def __str__(self) -> str:
        """Return who did what and when, in a few words."""
        return f"{self.verb} by {self.who} from {self.whence} at {self.time}, receipt {self.id}"


@dataclass(frozen=True, slots=True)
class Past:
    """A commit of a queue, `back` commits of its folder ago, and the lock that it had."""

    commit: str
    back: int
    lock: Lock


@dataclass(frozen=True, slots=True)
class Case:
    """One queue in one environment: all that a word is judged by.

    `lost`: this queue's patches in a record whose files are gone. `moved`: the journal is of
    another dist-info than the installed one. `past`, `edited` and `dirty` are asked only
    where they matter: the commits that had a lock for a release, newest first; how the
    series' files differ from its lock; whether the queue has uncommitted changes.
    """

    queue: str
    survey: Survey
    locks: Mapping[str, Lock | None] = field(default_factory=dict)
    in_sight: bool = True
    last: Receipt | None = None
    lost: tuple[str, ...] = ()
    moved: bool = False
    busy: Mapping[str, object] | None = None
    past: Callable[[str], Iterable[Past]] = lambda release: ()
    edited: Callable[[str], str | None] = lambda release: None
    dirty: Callable[[], bool] = lambda: False

    @property
    def held(self) -> tuple[AppliedPatch, ...]:
        """This queue's patches on the recorded stack, bottom to top."""
        return tuple(one for one in self.survey.stack if one.queue == self.queue)

    @property
    def left(self) -> tuple[str, ...]:
        """This queue's patches that the last receipt left on, where no record is there."""
        if self.last is None or self.survey.stack or self.survey.orphaned:
            return ()
        return tuple(patch for queue, patch, _ in self.last.applied if queue == self.queue)

    @property
    def choice(self) -> standing.Choice | None:
        """The series that fits, if any."""
        return standing.choose(self.locks, self.queue, self.survey)


@dataclass(frozen=True, slots=True)
class Finding:
    """A word, what proves it, and what to type; `behind` counts commits of the queue."""

    word: Word
    why: str
    release: str | None = None
    paths: tuple[str, ...] = ()
    behind: int | None = None
    commit: str | None = None
    mend: str = ""


def orphaned(case: Case, reason: str, names: tuple[str, ...]) -> Finding:
    """Return the finding that patches which somebody pushed are gone."""
    gone = f"{', '.join(names)} of this queue " if names else ""
    by = f"; the ledger's last receipt: {case.last}" if case.last else ""
    why = f"{gone}{'are' if len(names) != 1 else 'is'} gone: {reason}{by}" if names else reason
    # A push recovers first; without a series for what is there now, only the record is in the way.
    mend = "patchq push -a" if case.choice else "patchq recover   # sets the record aside"
    return Finding(Word.ORPHANED, why, mend=mend)


def differs(path: str, expected: FileState, found: FileState) -> str:
    """Return in what a file is not what it should be, by digests."""
    return f"{path}: expected {_short(expected)}, found {_short(found)}"


def _short(state: FileState) -> str:
    if state.sha256 is None:
        return "no file"
    return f"sha256 {state.sha256[:12]}" + (" (executable)" if state.executable else "")


def some(texts: Iterable[str], most: int = 3) -> str:
    """Return a few of many texts, and how many more there are."""
    listed = list(texts)
    more = f" and {len(listed) - most} more" if len(listed) > most else ""
    return "; ".join(listed[:most]) + more


def count(number: int, one: str, many: str) -> str:
    """Return a number with its noun."""
    return f"{number} {one if number == 1 else many}"
