"""The first question of every verb: what is there, and which series fits it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from patchq import standing
from patchq.errors import PatchqError, UsageError
from patchq.model import (
    AppliedPatch,
    FileState,
    Found,
    Installed,
    Lock,
    PathChange,
    Sha256,
    Survey,
)
from patchq.queue import store
from patchq.transport.channel import Conversation, Reply, Request


@dataclass(frozen=True, slots=True)
class Aim:
    """What a verb is about: the queues it may mean, and where in the host it looks.

    `named` is true where the user named the queue; `target` is a ``--target``
    folder; `explicit` is true where the user named the interpreter or folder.
    `remote` is true where it is not on this machine.
    `cache` names the controller's folder of verdicts and pristine releases.
    """

    queues: tuple[store.Queue, ...]
    cache: Callable[[], Path]
    named: bool = False
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
    return survey_of(reply), reply


def sight(aim: Aim, want: Want | None = None, *, gone: bool = False) -> Conversation[Sight]:
    """Survey the environment and find the one queue that the verb means.

    With `gone` a distribution counts, too, of which only patchq's record is left.
    """
    want = want or Want()
    seen: list[Sight] = []
    for distribution in dict.fromkeys(queue.distribution for queue in aim.queues):
        queues = [queue for queue in aim.queues if queue.distribution == distribution]
        locks = {queue.name: {r: store.lock(queue, r) for r in queue.releases} for queue in queues}
        every = [lock for one in locks.values() for lock in one.values()]
        found, reply = yield from survey(aim, distribution, every, want)
        for queue in queues:
            choice = standing.choose(locks[queue.name], queue.name, found)
            seen.append(
                Sight(
                    queue,
                    found,
                    choice,
                    locks[queue.name],
                    reply.message["ok"],
                    reply.blobs,
                    aim.target,
                    aim.remote,
                )
            )
    return _only(aim, seen, gone)


def again(aim: Aim, before: Sight, want: Want) -> Conversation[Sight]:
    """Survey once more for a queue that is known already."""
    found, reply = yield from survey(aim, before.queue.distribution, before.locks.values(), want)
    choice = standing.choose(before.locks, before.queue.name, found)
    return replace(
        before, survey=found, choice=choice, extra=reply.message["ok"], texts=reply.blobs
    )


def _only(aim: Aim, seen: list[Sight], gone: bool) -> Sight:
    if not seen:
        raise UsageError(
            "there is no queue to work with",
            why="no folder with a queue.toml was found",
            mend="patchq queues   # lists the folders that are searched",
        )
    installed = [
        one for one in seen if one.survey.installed is not None or (gone and one.survey.orphaned)
    ]
    fits = [one for one in installed if one.choice is not None]
    if len(fits) > 1 and not aim.named:
        names = ", ".join(one.queue.name for one in fits)
        raise UsageError(
            f"{len(fits)} queues fit this environment: {names}",
            why="a verb works with one queue",
            mend=f"patchq VERB --queue {fits[0].queue.name}",
        )
    if installed:
        return (fits or installed)[0]
    raise _not_installed(next((one for one in seen if one.survey.orphaned), seen[0]))


def _not_installed(one: Sight) -> PatchqError:
    names, site = one.queue.distribution, one.survey.site or "no site-packages"
    if one.survey.orphaned:
        return PatchqError(
            f"{names} is not installed any more in {site}",
            why="it was removed under the patches; patchq's record of them is still there",
            mend="patchq recover   # sets the record aside",
        )
    release = one.queue.releases[-1] if one.queue.releases else ""
    return PatchqError(
        f"{names} is not installed for {one.survey.executable or 'this environment'}",
        why=f"looked in {site}; no dist-info of {names} is there",
        mend="patchq VERB --python /path/to/the/environment/bin/python"
        + (f", or: pip install {names}=={release}" if release else ""),
    )


def survey_of(reply: Reply) -> Survey:
    """Turn the agent's answer into a `Survey`."""
    ok = reply.message["ok"]
    state = ok.get("state") or {}
    have = ok.get("installed")
    return Survey(
        python=ok["python"]["version"],
        executable=ok["python"]["executable"],
        site=ok.get("site") or "",
        installed=have
        and Installed(
            have["name"], have["version"], have["dist_info"], have["record"], have["installer"]
        ),
        files={path: _found(path, facts) for path, facts in ok["files"].items()},
        stack=() if ok.get("orphaned") else tuple(map(_applied, state.get("stack", ()))),
        generation=state.get("generation", 0),
        environment=state.get("environment", ""),
        interrupted=ok.get("interrupted"),
        orphaned=ok.get("orphaned"),
        refusal=ok.get("refusal"),
        contents=reply.blobs,
    )


def _found(path: str, facts: Mapping[str, object]) -> Found:
    digest, recorded, problem = facts.get("sha256"), facts.get("recorded"), facts.get("problem")
    return Found(
        path=path,
        kind=str(facts["kind"]),
        state=FileState(Sha256(str(digest)) if digest else None, bool(facts.get("executable"))),
        recorded=Sha256(str(recorded)) if recorded else None,
        problem=str(problem) if problem else None,
    )


def _applied(entry: Mapping[str, object]) -> AppliedPatch:
    changes = entry["changes"]
    assert isinstance(changes, list)
    return AppliedPatch(
        queue=str(entry["queue"]),
        patch=str(entry["patch"]),
        release=str(entry["release"]),
        sha256=Sha256(str(entry["sha256"])),
        changes=tuple(
            PathChange(path, FileState.from_json(before), FileState.from_json(after))
            for path, before, after in changes
        ),
        options=str(entry.get("options", "")),
        receipt=str(entry.get("receipt", "")),
    )
