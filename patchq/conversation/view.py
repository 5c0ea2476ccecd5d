"""What a verb is about, what it wants to know, and what it then sees."""

from __future__ import annotations

import enum
import re
import shlex
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar, cast

from patchq import standing
from patchq.errors import PatchqError
from patchq.model import AppliedPatch, Lock, Sha256, Survey
from patchq.queue import holding, store
from patchq.transport.channel import Request

if TYPE_CHECKING:  # a verb that only names patches needs no plan
    from patchq.plan import Conflict

T = TypeVar("T")
# Verbs that work with one queue.
_QUEUED = re.compile(r"\bpatchq (push|pop|refresh|revert|restore|diff|check)\b")
# What was read beyond a survey: paths and their digests.
Reads = Mapping[str, Sha256 | None]


class Shared:
    """What is the same for every environment of a run: made once, then handed out.

    `contents` has bytes of files by their digest, so that a host need not send what
    another one sent; `judged` has what speaks against a push, by all that decides it: what
    the survey tells, and what was read beyond it; `asked` is true once any environment was
    asked for a change, `recovered` once one that was cut short was finished or undone; `holds`
    are the queues that are edited, for this run alone; `notes` is what is to be said of all
    of it. All conversations of a run are advanced one at a time.
    """

    def __init__(self) -> None:
        self.contents: dict[str, bytes] = {}
        self.judged: dict[Hashable, list[tuple[Reads, tuple[Conflict, ...]]]] = {}
        self.asked = False
        self.recovered = False
        self.holds = holding.Holds()
        self.notes: list[str] = []
        self._made: dict[Hashable, object] = {}

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return what `make` returned when this key was first asked for."""
        if key not in self._made:
            self._made[key] = make()
        return cast(T, self._made[key])

    def forget(self) -> None:
        """Make all of it anew when it is asked for: the queue's files were changed."""
        self._made.clear()


class Need(enum.Enum):
    """What a verb works from: a series in sight, or the record of what is applied.

    `GONE`: the record alone, also of a distribution that is not installed any more.
    """

    SERIES = enum.auto()
    RECORD = enum.auto()
    GONE = enum.auto()


@dataclass(frozen=True, slots=True)
class Aim:
    """What a verb is about: the queues it may mean, and where in the host it looks.

    `name` is the queue that the user named, in sight or not; `target` is a ``--target``
    folder; `explicit` is true where the user named the interpreter or folder.
    `remote` is true where it is not on this machine, `several` where it is one of a run's
    hosts, for all of which there is one `shared`.
    `cache` names the controller's folder of verdicts and pristine releases.
    `tree` is true where `target` is a plain tree: its one queue is a quilt series in it,
    and nobody knows what its files were released as.
    `wanted` are the queues that the inventory wants there.
    """

    queues: tuple[store.Queue, ...]
    cache: Callable[[], Path]
    name: str | None = None
    target: str | None = None
    explicit: bool = False
    remote: bool = False
    several: bool = False
    tree: bool = False
    wanted: tuple[str, ...] = ()
    shared: Shared = field(default_factory=Shared)

    def locks(self, queue: store.Queue) -> dict[str, Lock | None]:
        """Return the lock of each of a queue's series, read once per run."""
        return self.shared.once(
            ("locks", queue.folder),
            lambda: {release: store.lock(queue, release) for release in queue.releases},
        )

    def request(self, op: str, distribution: str, **more: object) -> Request:
        """Return a request to the agent about one distribution."""
        message: dict[str, object] = {
            "op": op,
            "distribution": distribution,
            "target": self.target,
        }
        if self.tree:
            message["tree"] = True
        request = Request({**message, "explicit": self.explicit, **more}, {})
        self.shared.asked |= request.writes
        return request


@dataclass(frozen=True, slots=True)
class Want:
    """What a survey is to bring along beside hashes.

    `contents`: bytes of surveyed files but for those in `known`; `extra`: paths
    beside the ones that the locks name; `more`: "patches", "ledger". `series`: what a plain
    tree's file must be: "ordered" as the patches that are on, in "any" order, or yet "made".
    """

    contents: bool = False
    known: frozenset[str] = frozenset()
    extra: tuple[str, ...] = ()
    more: tuple[str, ...] = ()
    series: Literal["ordered", "any", "made"] = "ordered"


@dataclass(frozen=True, slots=True)
class Sight:
    """One environment, the queue that the verb means, and the series that fits, if any."""

    queue: store.Queue
    survey: Survey
    choice: standing.Choice | None
    locks: Mapping[str, Lock | None]
    extra: Mapping[str, object] = field(default_factory=dict)
    texts: Mapping[str, bytes] = field(default_factory=dict)
    target: str | None = None
    remote: bool = False
    tree: bool = False

    @property
    def release(self) -> str:
        """The release of the chosen series; raises where none fits."""
        if self.choice is None:
            raise no_series(self)
        return self.choice.release

    @property
    def lock(self) -> Lock:
        """The lock of the chosen series; raises where none is written."""
        lock = self.locks.get(self.release)
        if lock is None:
            raise PatchqError(
                f"the series for {self.release} of queue {self.queue.name} has no series.lock",
                why="a push compares every file with the hashes that the lock holds",
                mend=f"patchq lint --write --queue {self.queue.folder}",
            )
        return lock

    @property
    def names(self) -> tuple[str, ...]:
        """The patches of the chosen series, bottom to top."""
        if self.release not in self.queue.releases:  # known by the record only
            return tuple(applied.patch for applied in self.applied)
        if self.tree:
            return tuple(patch.name for patch in self.lock.patches)
        return tuple(entry.name for entry in store.series(self.queue, self.release).entries)

    @property
    def applied(self) -> tuple[AppliedPatch, ...]:
        """This queue's patches on the recorded stack, bottom to top."""
        return tuple(a for a in self.survey.stack if a.queue == self.queue.name)

    def meant(self, mend: str) -> str:
        """Return a command to type so that it means this queue, where several have patches on."""
        several = len({applied.queue for applied in self.survey.stack}) > 1
        return queued(mend, self.queue.name) if several else mend


def queued(mend: str, queue: str) -> str:
    """Return a command to type that means one queue, where it does not say which."""
    if "--queue" in mend:
        return mend
    return _QUEUED.sub(lambda found: f"{found[0]} --queue {shlex.quote(queue)}", mend)


def no_series(sight: Sight) -> PatchqError:
    """Return the error for an environment that no series of the queue fits."""
    have = sight.survey.installed
    version = f"{have.name} {have.version}" if have else sight.queue.distribution
    if not sight.locks and have is not None:
        return PatchqError(
            f"queue {sight.queue.name} has no patch yet",
            why=f"there is no series in {sight.queue.folder}",
            mend=f"patchq new NAME.patch --queue {sight.queue.folder}",
        )
    return PatchqError(
        f"no series of queue {sight.queue.name} fits {version} in {sight.survey.site}",
        why=f"it has series for {', '.join(sight.locks) or 'no release'}; the files equal none",
        mend=f"patchq check --queue {sight.queue.name}   # says whether it needs the patches",
    )
