"""The first question of every verb: what is there, and which series fits it."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from patchq import standing
from patchq.conversation import answers, selection
from patchq.errors import PatchqError
from patchq.model import AppliedPatch, Lock, Survey
from patchq.queue import store
from patchq.transport.channel import Conversation, Reply, Request


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
    `remote` is true where it is not on this machine.
    `cache` names the controller's folder of verdicts and pristine releases.
    """

    queues: tuple[store.Queue, ...]
    cache: Callable[[], Path]
    name: str | None = None
    target: str | None = None
    explicit: bool = False
    remote: bool = False

    def request(self, op: str, distribution: str, **more: object) -> Request:
        """Return a request to the agent about one distribution."""
        return Request(
            {
                "op": op,
                "distribution": distribution,
                "target": self.target,
                "explicit": self.explicit,
                **more,
            },
            {},
        )


@dataclass(frozen=True, slots=True)
class Want:
    """What a survey is to bring along beside hashes.

    `contents`: bytes of surveyed files but for those in `known`; `extra`: paths
    beside the ones that the locks name; `more`: "patches", "ledger".
    """

    contents: bool = False
    known: frozenset[str] = frozenset()
    extra: tuple[str, ...] = ()
    more: tuple[str, ...] = ()


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
        if self.locks.get(self.release) is not None:
            return tuple(patch.name for patch in self.lock.patches)
        return tuple(entry.name for entry in store.series(self.queue, self.release).entries)

    @property
    def applied(self) -> tuple[AppliedPatch, ...]:
        """This queue's patches on the recorded stack, bottom to top."""
        return tuple(a for a in self.survey.stack if a.queue == self.queue.name)


def no_series(sight: Sight) -> PatchqError:
    """Return the error for an environment that no series of the queue fits."""
    have = sight.survey.installed
    version = f"{have.name} {have.version}" if have else sight.queue.distribution
    return PatchqError(
        f"no series of queue {sight.queue.name} fits {version} in {sight.survey.site}",
        why=f"it has series for {', '.join(sight.locks) or 'no release'}; the files equal none",
        mend=f"patchq check --queue {sight.queue.name}   # says whether it needs the patches",
    )


def survey(
    aim: Aim, distribution: str, locks: Iterable[Lock | None], want: Want
) -> Conversation[tuple[Survey, Reply]]:
    """Ask for the facts about all paths that the locks name."""
    paths = dict.fromkeys(want.extra)
    for lock in locks:
        for patch in lock.patches if lock else ():
            paths.update(dict.fromkeys(change.path for change in patch.changes))
            paths.update(dict.fromkeys(patch.reads))
    known = sorted(want.known) if want.contents else None
    reply = yield aim.request(
        "survey", distribution, paths=list(paths), known=known, want=list(want.more)
    )
    found = answers.survey_of(reply)
    if found.refusal and found.refusal.get("word") in ("damaged-state", "newer-state"):
        # Without its record nothing can be said of an environment, not even "none applied".
        raise answers.refused(found.refusal)
    return found, reply


def sight(aim: Aim, want: Want | None = None, *, need: Need = Need.SERIES) -> Conversation[Sight]:
    """Survey the environment and find the one queue that the verb means."""
    want = want or Want()
    record, gone = need is not Need.SERIES, need is Need.GONE
    seen: list[Sight] = []
    for distribution in dict.fromkeys(queue.distribution for queue in aim.queues):
        seen += yield from _sights(aim, distribution, want)
    found = selection.only(aim, seen, record=record, gone=gone)
    if found is None and record:
        reply = yield aim.request("records", "")
        surveyed = {one.queue.distribution for one in seen}
        for distribution in reply.message["ok"]["records"]:
            if distribution not in surveyed:
                seen += yield from _sights(aim, str(distribution), want)
        found = selection.only(aim, seen, record=record, gone=gone)
    if found is None:
        raise selection.none(aim, seen)
    return found


def _sights(aim: Aim, distribution: str, want: Want) -> Conversation[list[Sight]]:
    """Survey one distribution: a sight per queue in view, and per queue on its stack."""
    queues = [queue for queue in aim.queues if queue.distribution == distribution]
    locks = {queue.name: {r: store.lock(queue, r) for r in queue.releases} for queue in queues}
    every = [lock for one in locks.values() for lock in one.values()]
    found, reply = yield from survey(aim, distribution, every, want)
    for name in dict.fromkeys(applied.queue for applied in found.stack):
        if name not in locks and (aim.name is None or aim.name == name):
            queues.append(store.Queue(name, Path(name), distribution, summary=""))
    return [
        Sight(
            queue,
            found,
            standing.choose(locks.get(queue.name, {}), queue.name, found),
            locks.get(queue.name, {}),
            reply.message["ok"],
            reply.blobs,
            aim.target,
            aim.remote,
        )
        for queue in queues
    ]


def again(aim: Aim, before: Sight, want: Want) -> Conversation[Sight]:
    """Survey once more for a queue that is known already."""
    found, reply = yield from survey(aim, before.queue.distribution, before.locks.values(), want)
    choice = standing.choose(before.locks, before.queue.name, found)
    return replace(
        before, survey=found, choice=choice, extra=reply.message["ok"], texts=reply.blobs
    )
