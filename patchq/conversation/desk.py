"""What the editing verbs share: the stack that is worked on, and the files in all their states.

A file has four texts here: `below` a patch, as the record says (`recorded`), as it is `now`, and
pristine. What is now and not as recorded is an edit that is in no patch yet. It belongs to
the topmost patch that has the file, and where none has it, the top one may take it. No verb
writes over it unless it is told to.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from patchq import standing
from patchq.agent import protocol
from patchq.conversation import files, judging, look, move, pristine, verify, view
from patchq.conversation.commit import Change, Ground, Step, send
from patchq.conversation.goal import Upto
from patchq.errors import PatchqError, QuiltError, UsageError
from patchq.model import ABSENT, AppliedPatch, FileState, PathChange, Survey, sha256
from patchq.queue import store
from patchq.transport.channel import Conversation

File = tuple[bytes, bool]


@dataclass(frozen=True, slots=True)
class Desk:
    """One environment, and the queue that is worked on there."""

    aim: view.Aim
    ground: Ground
    seen: view.Sight

    @property
    def survey(self) -> Survey:
        """What the environment holds."""
        return self.seen.survey

    @property
    def stack(self) -> tuple[AppliedPatch, ...]:
        """All that is on, of every queue."""
        return self.seen.survey.stack

    def applied(self, name: str | None) -> AppliedPatch:
        """Return a patch of the queue that is on, the top one for None.

        Raises:
            PatchqError: none is on, or it is not.
        """
        held = self.seen.applied
        if not held:
            raise QuiltError(
                "No patches applied",
                why=f"no patch of queue {self.seen.queue.name} is on in {self.survey.site}",
                mend="patchq push, or to begin one: patchq new NAME.patch",
            )
        if name is None:
            return held[-1]
        return held[self._index(name)]

    def _index(self, name: str) -> int:
        names = [one.patch for one in self.seen.applied]
        known = self.seen.names if self.seen.choice is not None else ()
        return Upto(name).index(names, "applied", known)

    def owner(self, path: str) -> AppliedPatch | None:
        """Return the topmost patch that has a file."""
        return next((one for one in reversed(self.stack) if has(one, path)), None)

    def above(self, patch: AppliedPatch, path: str) -> AppliedPatch | None:
        """Return the lowest patch above another that has a file, too."""
        at = self.stack.index(patch)
        return next((one for one in self.stack[at + 1 :] if has(one, path)), None)

    def recorded(self, path: str) -> FileState:
        """Return what should be at a path: by the stack, else by RECORD, else what is there."""
        says = standing.recorded(self.stack)
        return says[path] if path in says else self.original(path)

    def original(self, path: str) -> FileState:
        """Return what was at a path below all that is on."""
        if any(has(one, path) for one in self.stack):
            return standing.pristine(self.survey, path)
        found = self.survey.files[path]
        if self.seen.tree or (found.recorded is None and self._unlisted(path)):
            return found.state if self.seen.tree else ABSENT
        if found.recorded is None:
            return found.state
        return FileState(found.recorded, found.state.executable)

    def edited(self, path: str) -> bool:
        """Return whether a file is not as it should be."""
        return standing.live(self.survey, path) != self.recorded(path)

    def now(self, path: str) -> File | None:
        """Return a file as it is."""
        state = standing.live(self.survey, path)
        return None if state.sha256 is None else (self._bytes(state), state.executable)

    def _unlisted(self, path: str) -> bool:
        installed = self.survey.installed
        return installed is not None and installed.record is not None

    def _bytes(self, state: FileState) -> bytes:
        assert state.sha256 is not None
        return self.survey.contents[state.sha256]


def has(patch: AppliedPatch, path: str) -> bool:
    """Return whether a patch has a file, changed or only added to it."""
    return any(change.path == path for change in patch.changes)


def sit(
    aim: view.Aim,
    ground: Ground,
    paths: Iterable[str] = (),
    *,
    begins: bool = False,
    orders: bool = False,
) -> Conversation[Desk]:
    """Look at the environment for a verb that edits; `paths` are looked at, too.

    `begins`: the verb makes a plain tree's series where there is none; `orders`: it can do
    with one that is in another order than what is on.

    Raises:
        PatchqError: it is refused, its queue is not in sight, or more than one host is meant.
    """
    if not ground.dry_run:
        for queue in aim.queues:
            aim.shared.holds.take(queue.folder)
        move.whole(aim)
    aim.shared.forget()  # a verb that is made of others changed the queue meanwhile
    series: Literal["made", "ordered", "any"] = "made" if begins else "ordered"
    series = "any" if orders else series
    want = view.Want(True, extra=tuple(paths), more=("patches",), series=series)
    need = view.Need.SERIES if aim.tree else view.Need.RECORD
    seen = yield from move.ready(aim, ground, want, need)
    if not seen.tree and not any(seen.queue.name == one.name for one in aim.queues):
        raise UsageError(
            f"queue {seen.queue.name} is not in sight",
            why="its patches are on here, and its files are what would be edited",
            mend=f"patchq VERB --queue /path/to/{seen.queue.name}",
        )
    return Desk(aim, ground, seen)


def edits(desk: Desk) -> Conversation[tuple[str, ...]]:
    """Return the files that were edited and that no patch has (`loose`)."""
    return (yield from loose(desk.aim, desk.seen))


def loose(aim: view.Aim, seen: view.Sight) -> Conversation[tuple[str, ...]]:
    """Return the files that were edited and that no patch has, those that came with them too.

    A cheap look: what is as large and as old as the installer left it is not read. Of
    a plain tree nobody knows what its other files were. A name that no patch can have is
    left out.
    """
    if seen.tree:
        return ()
    request = aim.request(
        "hash", seen.queue.distribution, skip=list(verify.BINARIES), known=[], recent=True
    )
    ok = (yield request).message["ok"]
    mine = {path for one in seen.survey.stack for path in (c.path for c in one.changes)}
    found = (*ok["differs"], *(path for path in ok["added"] if path.endswith(".py")))
    return tuple(path for path in found if path not in mine and protocol.unsafe(path) is None)


def texts(desk: Desk, at: int, paths: Iterable[str]) -> Conversation[dict[str, File | None]]:
    """Return files as the lowest `at` patches of the stack leave them.

    Raises:
        PatchqError: a file was edited before any patch had it, and its release is not here.
    """
    stack, wanted = desk.stack[:at], list(dict.fromkeys(paths))
    inside = [path for path in wanted if any(has(one, path) for one in stack)]
    out = dict((yield from files.rebuild(desk.aim, desk.seen, stack, inside)))
    kept = [
        path
        for path in wanted
        if path not in out and any(has(one, path) for one in desk.stack[at:])
    ]
    if kept:
        originals = yield from files.originals(desk.aim, desk.seen, kept)
        for path, data in originals.items():
            mode = standing.pristine(desk.survey, path).executable
            out[path] = None if data is None else (data, mode)
    for path in wanted:
        if path not in out:
            out[path] = untouched(desk, path)
    return out


def untouched(desk: Desk, path: str) -> File | None:
    """Return the pristine file at a path that no patch has, edited or not.

    Raises:
        PatchqError: it was edited, and the release's text is not here.
    """
    state, there = desk.original(path), desk.survey.files[path].state
    if state.sha256 is None:
        return None
    if state.sha256 == there.sha256:
        return desk.now(path)
    have = desk.survey.installed
    assert have is not None
    distribution, version = desk.seen.queue.distribution, standing.public(have.version)
    found = pristine.texts(desk.aim.cache(), distribution, version, (path,)).get(path)
    if found is None or sha256(found) != state.sha256:
        raise pristine.unknown(distribution, version)
    return found, state.executable


def check_places(desk: Desk, paths: Iterable[str]) -> None:
    """Raise where a file can not be recorded or replaced, as the agent would: a folder is there.

    Raises:
        PatchqError: it is so; nothing was changed yet.
    """
    for path in paths:
        problem = desk.survey.files[path].problem
        if problem is not None:
            raise PatchqError(
                f"{path} can not be part of a patch",
                why=problem,
                mend=f"see to {desk.survey.site}/{path}, then run it again",
            )


def settle(
    desk: Desk,
    verb: str,
    steps: Iterable[Step],
    stack: tuple[AppliedPatch, ...],
    blobs: Mapping[str, bytes],
    moved: Mapping[str, tuple[str, ...]],
) -> Conversation[Mapping[str, object]]:
    """Send what an editing verb makes of the environment."""
    release = desk.seen.choice.release if desk.seen.choice else ""
    change = Change(verb, release, tuple(steps), stack, moved, blobs)
    return (yield from send(desk.aim, desk.ground, desk.seen, change))


def taken(desk: Desk, path: str, after: FileState, first: File | None) -> Step:
    """Return the step by which a file comes to a patch as it is; `first` is its original.

    One that nobody edited gets a place of its own, so that an edit reaches no cache that the
    installer linked it into.
    """
    there = standing.live(desk.survey, path)
    change = PathChange(path, there, there)
    if any(has(one, path) for one in desk.stack):
        return Step(change, "adopt")
    was = FileState.of(*first) if first is not None else ABSENT
    if there != was:
        return Step(change, "adopt", was)
    return Step(change, "adopt" if first is None else "detach")


def relative(desk: Desk, path: str) -> str:
    """Return a file's path below the environment's root, as it is given there."""
    return path.removeprefix(desk.survey.site + "/")


def replaced(
    stack: tuple[AppliedPatch, ...], old: AppliedPatch, new: AppliedPatch | None
) -> tuple[AppliedPatch, ...]:
    """Return a stack with another patch in the place of one, or without it."""
    return tuple(
        one for applied in stack for one in ((new,) if applied is old else (applied,)) if one
    )


def queue_at(desk: Desk, release: str) -> store.Queue:
    """Return the queue with its release counted in, also where the series is yet to be made."""
    from dataclasses import replace

    releases = tuple(dict.fromkeys((*desk.seen.queue.releases, release)))
    return replace(desk.seen.queue, releases=releases)


def states(tree: judging.Tree, paths: Iterable[str]) -> dict[str, FileState]:
    """Return the states of files."""
    return {path: FileState.of(*(tree.get(path) or (None,))) for path in paths}


def again(desk: Desk, paths: Iterable[str] = ()) -> Conversation[Desk]:
    """Look at the environment anew: for a verb that changed it, or at more `paths`."""
    want = view.Want(True, extra=tuple(paths), more=("patches",))
    return Desk(desk.aim, desk.ground, (yield from look.again(desk.aim, desk.seen, want)))
