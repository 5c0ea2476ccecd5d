"""Patches in another order, and one out of the middle: float, sink, pop --only.

The queue's files change first, then the environment's record. Where the patches are on, no
file of the environment moves: in the new order they give the very same files, or nothing is
done. A run that was cut short between the two leaves a record in the old order; any of these
verbs brings it to the series' first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from patchq import plan, standing
from patchq.conversation import desk, move, view
from patchq.conversation.commit import Ground
from patchq.conversation.desk import Desk
from patchq.conversation.goal import Upto
from patchq.editing import basing, making, restacking
from patchq.engine import commute
from patchq.errors import ConflictError, PatchqError, UsageError
from patchq.model import Patch
from patchq.queue import arrangement, editing, store, wayback
from patchq.report import Report
from patchq.transport.channel import Conversation


@dataclass(frozen=True, slots=True)
class Order:
    """A series in another order: a patch that goes from one place to another.

    `patches` are those up to the higher of the two places, and all that are on, in the
    new order.
    """

    at: Desk
    names: tuple[str, ...]
    start: int
    goal: int
    patches: tuple[Patch, ...]
    read: editing.Read

    @property
    def name(self) -> str:
        """The patch that moves."""
        return self.names[self.start]

    @property
    def fresh(self) -> tuple[str, ...]:
        """The names of the series in the new order."""
        left = [one for one in self.names if one != self.name]
        return (*left[: self.goal], self.name, *left[self.goal :])

    @property
    def on(self) -> tuple[Patch, ...]:
        """The patches that are applied, in the new order."""
        held = {one.patch for one in self.at.seen.applied}
        return tuple(one for one in self.patches if one.name in held)


def float_(aim: view.Aim, ground: Ground, name: str | None) -> Conversation[Report]:
    """Move a patch to the top of those that are on; one that is not on, to the series' end.

    Raises:
        PatchqError: there is no such patch.
        ConflictError: it does not commute with a patch above it.
    """
    at = yield from _sit(aim, ground)
    names = at.seen.names
    start = _index(at, name)
    count = len(at.seen.applied)
    goal = (count if start < count else len(names)) - 1
    if start == goal:
        where = "on top" if start < count else "the last of the series"
        return move.nothing("float", at.seen, f"Patch {names[start]} is {where} already")
    return (yield from _reorder(at, "float", start, goal))


def sink(
    aim: view.Aim, ground: Ground, name: str | None, below: str | None
) -> Conversation[Report]:
    """Move a patch down below another: to the bottom if `below` is None, as far as it is on.

    Raises:
        PatchqError: there is no such patch.
        ConflictError: it does not commute with a patch below it.
    """
    at = yield from _sit(aim, ground)
    names = list(at.seen.names)
    start, count = _index(at, name), len(at.seen.applied)
    goal = 0 if start < count else count
    if below is not None:
        goal = names.index(names[Upto(below).index(names, "in series")])
        if goal < count <= start:
            raise PatchqError(
                f"Patch {names[start]} is not applied, and {names[goal]} is",
                why="below a patch that is on only one can be that is on, too",
                mend=f"patchq goto {names[start]}, then: patchq sink --to {names[goal]}",
            )
    if start == goal or (below is not None and start + 1 == goal):
        where = f"below {names[goal]}" if start < goal else "where it is to be"
        where = "the next to apply" if below is None and start else where
        where = "at the bottom" if below is None and not start else where
        return move.nothing("sink", at.seen, f"Patch {names[start]} is {where} already")
    if goal > start:
        raise UsageError(
            f"Patch {names[start]} is below {names[goal]} already",
            why="sink moves a patch down",
            mend=f"patchq float {names[start]}",
        )
    return (yield from _reorder(at, "sink", start, goal))


def pop_only(aim: view.Aim, ground: Ground, name: str) -> Conversation[Report]:
    """Take one patch off from the middle; those above it stay on, and it is the next one then.

    Raises:
        PatchqError: it is not on.
        ConflictError: it does not commute with a patch above it.
    """
    at = yield from _sit(aim, ground)
    held = [one.patch for one in at.seen.applied]
    if not held:
        return move.nothing("pop", at.seen, "No patch removed")
    start = Upto(name).index(held, "applied")
    goal = len(held) - 1
    if start == goal:
        return (yield from move.backward(aim, ground, at.seen, goal))
    order = yield from _ordered(at, start, goal)
    stack, blobs = yield from restacking.restacked(at, order.on)
    seen = replace(
        at.seen,
        survey=replace(at.seen.survey, stack=stack),
        texts={**at.seen.texts, **blobs},
    )
    loose = at.seen.tree
    if ground.dry_run or plan.pop(seen.queue.name, seen.survey, goal, loose=loose).conflicts:
        return (yield from move.backward(aim, ground, seen, goal))
    notes = _written(order, "")
    done = yield from move.backward(aim, ground, seen, goal)
    above = order.patches[goal - 1].name
    said = f"Patch {order.name} is the next of the series now: above {above}"
    return replace(done, notes=(*done.notes, said, *notes))


def _sit(aim: view.Aim, ground: Ground) -> Conversation[Desk]:
    """Look at an environment whose record has the series' order; bring it there if need be."""
    at = yield from desk.sit(aim, ground, orders=True)
    names, held = at.seen.names, [one.patch for one in at.seen.applied]
    lowest = list(names[: len(held)])
    if held == lowest:
        return at
    if sorted(held) != sorted(lowest):
        raise making.out_of_order(at, names)
    patches = restacking.patches(at, len(held))
    if not at.seen.tree and not ground.dry_run:  # the lock may be of the old order, too
        release = at.seen.release
        queue = desk.queue_at(at, release)
        edit = editing.Edit(queue, release, store.series(queue, release))
        editing.write(edit, (yield from basing.base(at, release)))
    yield from _recorded(at, "reorder", (), patches)
    return (yield from desk.again(at))


def _index(at: Desk, name: str | None) -> int:
    """Return the place of a patch in the series, the top one's for None."""
    names = list(at.seen.names)
    if name is None:
        return names.index(at.applied(None).patch)
    return Upto(name).index(names, "in series")


def _reorder(at: Desk, verb: str, start: int, goal: int) -> Conversation[Report]:
    """Change the order of a series, and of the record where it is on."""
    order = yield from _ordered(at, start, goal)
    fresh = order.fresh
    where = f"above {fresh[goal - 1]}" if goal else f"below {fresh[1]}, at the bottom"
    names = list(fresh)
    document = {"verb": verb, "queue": at.seen.queue.name, "patch": order.name, "series": names}
    if at.ground.dry_run:
        return Report((f"Patch {order.name} would be {where}",), (), document)
    back = ""
    if goal > start:
        back = f"patchq sink --to {order.names[start + 1]} {order.name}"
    elif start in (len(order.names) - 1, len(at.seen.applied) - 1):
        back = f"patchq float {order.name}"
    notes = _written(order, back)
    if order.on and start < len(at.seen.applied):
        yield from _recorded(at, verb, (order.name,), order.on)
    return Report((f"Patch {order.name} is now {where}",), notes, document)


def _ordered(at: Desk, start: int, goal: int) -> Conversation[Order]:
    """Return a series in another order, judged; nothing is written.

    Raises:
        ConflictError: the patches do not commute, or one is bad in its new place.
    """
    release = at.seen.release
    read = yield from basing.base(at, release)
    patches = restacking.patches(at, max(start, goal, len(at.seen.applied) - 1) + 1)
    restacking.check_texts(at, patches, read)
    paths = dict.fromkeys(path for patch in patches for path in patch.paths)
    base = {path: read(path) for path in paths}
    found = commute.moved(patches, start, goal, base, search=at.seen.tree)
    if isinstance(found, commute.InTheWay):
        raise _in_the_way(found, patches[start].name)
    if not at.seen.tree:
        yield from restacking.judged(at, patches, found, read)
    return Order(at, at.seen.names, start, goal, found, read)


def _in_the_way(found: commute.InTheWay, name: str) -> ConflictError:
    other = found.upper if found.lower == name else found.lower
    return ConflictError(
        f"Patch {name} can not trade places with {other}",
        why=str(found),
        mend="patchq overlap   # shows which patches touch the same lines",
    )


def _written(order: Order, back: str) -> tuple[str, ...]:
    """Put the new order on disk; return what is to be said of it."""
    at = order.at
    release = at.seen.release
    queue = desk.queue_at(at, release)
    listed = arrangement.reordered(store.series(queue, release), order.fresh)
    files: dict[str, bytes | None] = {}
    for patch in order.patches:
        name = editing.patch(release, patch.name)
        if patch.text or (queue.folder / name).exists():
            files[name] = patch.text
    edit = editing.Edit(queue, release, listed, files)
    then = "patchq float" if order.start < len(at.seen.applied) else ""
    notes = wayback.told(edit, back, then=then, locked=not at.seen.tree)
    return (*editing.write(edit, None if at.seen.tree else order.read), *notes)


def _recorded(
    at: Desk, verb: str, moved: Sequence[str], patches: tuple[Patch, ...]
) -> Conversation[None]:
    """Record the patches that are on in their new order; no file changes."""
    stack, blobs = yield from restacking.restacked(at, patches)
    was, now = standing.recorded(at.stack), standing.recorded(stack)
    if was != now:
        path = next(path for path in was if was[path] != now.get(path))
        raise ConflictError(
            f"in the other order {path} would be another file",
            why="the patches that are on give other bytes so",
            mend="patchq pop -a, then: patchq push -a",
        )
    yield from desk.settle(at, verb, (), stack, blobs, {verb: tuple(moved)})
