"""How far a recorded stack is in a series, and whether its digests are the series' own.

The record is a file in the environment: whoever edits a patched file may edit it, too. A
series' lock is not there. So what the record says is believed where the lock says the
same; of a file that another queue's patches change as well only the chain is looked at,
which must begin where the lock begins.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from patchq import standing
from patchq.model import ABSENT, AppliedPatch, FileState, Lock, LockedPatch, PathChange

Locks = Mapping[str, Mapping[str, Lock | None]]


def reached(held: Iterable[AppliedPatch], lock: Lock) -> int | None:
    """Return how many patches of a series are what is held, by text or by effect.

    By text: the same names, options and patches, in order; a series that is stacked on
    another queue's has other files before and after. By effect: the same changes, in
    whatever patches. None where it is neither.
    """
    mine = tuple(held)
    texts = [(one.name, one.options, one.patch) for one in lock.patches]
    if texts[: len(mine)] == [(one.patch, one.options, one.sha256) for one in mine]:
        return len(mine)
    return _by_effect(mine, lock)


def _by_effect(held: Sequence[AppliedPatch], lock: Lock) -> int | None:
    changes = [change for one in held for change in one.changes]
    built: list[PathChange] = []
    for number, patch in enumerate(lock.patches, 1):
        built += patch.changes
        if built == changes:
            return number
    return None


def differing(
    stack: Sequence[AppliedPatch], held: Sequence[AppliedPatch], lock: Lock
) -> dict[str, tuple[FileState, FileState]]:
    """Return where a record says other than the lock whose patches it names.

    Path -> (state by the lock, state by the record); `held` are the queue's own of `stack`.
    """
    among = _touched(one for one in stack if one not in held)
    out: dict[str, tuple[FileState, FileState]] = {}
    pairs = zip(held, lock.patches, strict=False) if _by_effect(held, lock) is None else ()
    for one, pinned in pairs:
        for path, want, said in _pairs(one, pinned):
            wrong = want is None or said is None if path in among else want != said
            if wrong:
                out.setdefault(path, (_after(want), _after(said)))
    now = dict(lock.base)
    for one in stack:
        for change in one.changes:
            if change.path in among and change.path in now and change.before != now[change.path]:
                out.setdefault(change.path, (now[change.path], change.before))
            now[change.path] = change.after
    return out


def _touched(stack: Iterable[AppliedPatch]) -> frozenset[str]:
    return frozenset(change.path for one in stack for change in one.changes)


def _pairs(
    one: AppliedPatch, pinned: LockedPatch
) -> Iterator[tuple[str, PathChange | None, PathChange | None]]:
    """Yield each path of a patch with its change by the lock and by the record."""
    wants = {change.path: change for change in pinned.changes}
    says = {change.path: change for change in one.changes}
    for path in dict.fromkeys((*wants, *says)):
        yield path, wants.get(path), says.get(path)


def _after(change: PathChange | None) -> FileState:
    return ABSENT if change is None else change.after


def shared(stack: Sequence[AppliedPatch], held: Sequence[AppliedPatch]) -> dict[str, str]:
    """Return the files of `held` that other queues of the stack change, too: path -> queue."""
    mine = _touched(held)
    return {
        change.path: one.queue
        for one in stack
        if one not in held
        for change in one.changes
        if change.path in mine
    }


def expected(stack: Sequence[AppliedPatch], locks: Locks) -> dict[str, FileState]:
    """Return each path as the stack leaves it: by a lock where there is one, else as recorded.

    `locks` are those of each queue in sight, by release. A file that the record names and
    that the lock's patches do not change is left out.
    """
    says = standing.recorded(stack)
    for queue in dict.fromkeys(one.queue for one in stack):
        held = [one for one in stack if one.queue == queue]
        lock = locks.get(queue, {}).get(held[-1].release)
        number = None if lock is None else reached(held, lock)
        if lock is None or number is None:
            continue
        others = _touched(one for one in stack if one.queue != queue)
        pinned = [change for patch in lock.patches[:number] for change in patch.changes]
        mine = {change.path: change.after for change in pinned if change.path not in others}
        for path in _touched(held) - others - mine.keys():
            del says[path]
        says.update(mine)
    return says
