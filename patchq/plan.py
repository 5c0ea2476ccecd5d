"""Which series an environment has, and what a push or pop would do to it.

Pure: a lock, a survey and a goal in, a `Plan` out. A plan holds either the whole
way to its goal or every reason against it; it never holds half of each. Bytes
are not needed here: all is decided by hashes (docs/architecture.md, "Plan").
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from patchq.misfit import Conflict as Conflict  # what a plan holds, in one place with it
from patchq.misfit import Kind as Kind
from patchq.misfit import misfit, prefix
from patchq.model import AppliedPatch, FileState, Lock, LockedPatch, PathChange, Survey
from patchq.standing import live, pristine, recorded

_Tree = Mapping[str, FileState]


@dataclass(frozen=True, slots=True)
class Plan:
    """What a transaction would do: `entries` live → goal, `restored` from originals.

    `adopted`: what was below the patches at paths that hold their result already.
    """

    verb: str
    queue: str
    release: str
    patches: tuple[str, ...]
    entries: tuple[PathChange, ...] = ()
    restored: frozenset[str] = frozenset()
    stack: tuple[AppliedPatch, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    adopted: Mapping[str, FileState] = field(default_factory=dict)


def position(lock: Lock, queue: str, survey: Survey) -> int | Conflict:
    """Return how many patches of the series are applied, by the record."""
    held = [applied for applied in survey.stack if applied.queue == queue]
    for index, applied in enumerate(held):
        here = lock.patches[index] if index < len(lock.patches) else None
        if here is None or here.name != applied.patch:
            want = here.name if here else "no further patch"
            return Conflict(
                Kind.ORDER,
                applied.patch,
                None,
                f"{applied.patch} is applied as number {index + 1}; the series has {want} there",
            )
        if here.patch != applied.sha256 and here.changes != applied.changes:
            return Conflict(
                Kind.CHANGED_PATCH,
                applied.patch,
                None,
                f"{applied.patch} was changed in the queue after it was pushed here",
            )
    return len(held)


def push(lock: Lock, queue: str, survey: Survey, goal: int, *, adopt: bool = False) -> Plan:
    """Plan to apply the patches of a series up to `goal` (a count from the bottom).

    `adopt`: files that are as the goal has them, and that nobody recorded, are taken over.
    """
    start = position(lock, queue, survey)
    if isinstance(start, Conflict):
        return Plan("push", queue, lock.release, (), conflicts=(start,))
    todo = lock.patches[start:goal]
    tree = recorded(survey.stack)
    first: dict[str, FileState] = {}
    adopted = _there(todo, survey, tree) if adopt else {}
    first.update(adopted)
    edited = [one for one in drift(queue, survey) if one.path not in adopted]
    conflicts = list(edited)
    known = {one.path for one in edited}
    reach = prefix(lock, survey, start)
    stack = list(survey.stack)
    for patch in todo:
        misfits = _misfits(patch, (lock, reach), queue, survey, first, tree)
        conflicts += [one for one in misfits if one.path not in known]
        for change in patch.changes:
            first.setdefault(change.path, live(survey, change.path))
            tree[change.path] = change.after
        stack.append(
            AppliedPatch(
                queue, patch.name, lock.release, patch.patch, patch.changes, patch.options
            )
        )
    return Plan(
        "push",
        queue,
        lock.release,
        tuple(patch.name for patch in todo),
        _entries(first, tree),
        frozenset(),
        tuple(stack),
        tuple(conflicts),
        adopted,
    )


def _there(todo: Iterable[LockedPatch], survey: Survey, tree: _Tree) -> dict[str, FileState]:
    """Return what is below the patches at paths that hold already what they make of it."""
    below: dict[str, FileState] = {}
    above: dict[str, FileState] = {}
    for patch in todo:
        for change in patch.changes:
            below.setdefault(change.path, change.before)
            above[change.path] = change.after
    return {
        path: state
        for path, state in below.items()
        if tree.get(path, state) == state != above[path] == live(survey, path)
    }


def drift(queue: str, survey: Survey) -> tuple[Conflict, ...]:
    """Return the files of a queue's recorded patches that are not as the record says.

    A stack that drifted does not move: what it says is applied is not there.
    """
    says = recorded(survey.stack)
    top = {c.path: a.patch for a in survey.stack if a.queue == queue for c in a.changes}
    return tuple(
        Conflict(
            Kind.DRIFT,
            patch,
            path,
            f"{path} was edited after {patch} was pushed",
            says[path],
            live(survey, path),
        )
        for path, patch in top.items()
        if path in survey.files and live(survey, path) != says[path]
    )


def _entries(
    first: _Tree, tree: _Tree, restored: frozenset[str] = frozenset()
) -> tuple[PathChange, ...]:
    """Return what is to be done to each path; a restored one gets its very file back."""
    return tuple(
        PathChange(path, before, tree[path])
        for path, before in first.items()
        if before != tree[path] or path in restored
    )


def _misfits(
    patch: LockedPatch,
    known: tuple[Lock, int],
    queue: str,
    survey: Survey,
    first: _Tree,
    tree: _Tree,
) -> list[Conflict]:
    """Return why a patch does not fit, path by path; `tree` is what lies below it.

    `known`: the lock, and after how many of its patches the files are as they are.
    """
    lock, reach = known
    out = []
    for change in patch.changes:
        found = survey.files.get(change.path)
        below = tree.get(change.path)
        if below is not None and below != change.before:
            out.append(_covered(patch, change, queue, survey, below))
        elif change.path not in first and live(survey, change.path) != (below or change.before):
            out.append(misfit(patch, change, lock, survey, below or change.before, reach))
        elif found is not None and found.problem and change.path not in first:
            out.append(
                Conflict(
                    Kind.REFUSED,
                    patch.name,
                    change.path,
                    f"{change.path} can not be replaced",
                    detail=found.problem,
                )
            )
    return out


def _covered(
    patch: LockedPatch, change: PathChange, queue: str, survey: Survey, below: FileState
) -> Conflict:
    owner = next(
        (
            applied
            for applied in reversed(survey.stack)
            if applied.queue != queue and any(c.path == change.path for c in applied.changes)
        ),
        None,
    )
    if owner is None:
        message = (
            f"{change.path} is not what {patch.name} was made on; the series.lock is not whole"
        )
        return Conflict(Kind.ORDER, patch.name, change.path, message, change.before, below)
    message = (
        f"{change.path} is changed by {owner.patch} of queue {owner.queue} below {patch.name}"
    )
    kind, states = Kind.ANOTHER_QUEUE, (change.before, below)
    return Conflict(kind, patch.name, change.path, message, *states, other=owner.queue)


def pop(
    queue: str, survey: Survey, keep: int, *, loose: bool = False, force: bool = False
) -> Plan:
    """Plan to take off this queue's patches until `keep` of them are left.

    `loose`: edits of files that no patch which goes has are no matter; `force`: none are.
    """
    held = [applied for applied in survey.stack if applied.queue == queue]
    gone = held[keep:]
    release = held[-1].release if held else ""
    stack = tuple(applied for applied in survey.stack if applied not in gone)
    left = recorded(stack)
    edited = {} if not gone else {one.path: one for one in drift(queue, survey)}
    conflicts: list[Conflict] = []
    first: dict[str, FileState] = {}
    goal: dict[str, FileState] = {}
    for applied in reversed(gone):
        for change in applied.changes:
            above = _above(applied, change.path, queue, survey)
            if above is not None:
                conflicts.append(above)
            if change.path in first:
                continue
            first[change.path] = live(survey, change.path)
            goal[change.path] = left.get(change.path, pristine(survey, change.path))
            if above is not None:
                edited.pop(change.path, None)
    if loose or force:
        edited = {path: one for path, one in edited.items() if path in first and not force}
    restored = frozenset(path for path in first if path not in left)
    return Plan(
        "pop",
        queue,
        release,
        tuple(applied.patch for applied in reversed(gone)),
        _entries(first, goal, restored),
        restored,
        stack,
        (*conflicts, *edited.values()),
    )


def _above(applied: AppliedPatch, path: str, queue: str, survey: Survey) -> Conflict | None:
    at = survey.stack.index(applied)
    for other in survey.stack[at + 1 :]:
        if other.queue != queue and any(change.path == path for change in other.changes):
            message = (
                f"{path} is changed by {other.patch} of queue {other.queue} above {applied.patch}"
            )
            kind = Kind.ANOTHER_QUEUE
            return Conflict(kind, applied.patch, path, message, other=other.queue)
    return None
