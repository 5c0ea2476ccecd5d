"""Which series an environment has, and what a push or pop would do to it.

Pure: a lock, a survey and a goal in, a `Plan` out. A plan holds either the whole
way to its goal or every reason against it; it never holds half of each. Bytes
are not needed here: all is decided by hashes (docs/architecture.md, "Plan").
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass

from patchq.model import (
    ABSENT,
    AppliedPatch,
    FileState,
    Found,
    Lock,
    LockedPatch,
    PathChange,
    Survey,
)
from patchq.standing import live, pristine, public, recorded

_Tree = Mapping[str, FileState]


class Kind(enum.Enum):
    """Why a patch does not fit; each is told apart by content."""

    DRIFT = "drift"
    ANOTHER_QUEUE = "another queue's patch"
    WRONG_RELEASE = "wrong release"
    PARTIAL = "partial"
    ALREADY_THERE = "already there"
    ORDER = "order"
    CHANGED_PATCH = "changed patch"
    MERGED_UPSTREAM = "merged upstream"
    JUDGEMENT = "judgement"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Conflict:
    """One reason why nothing may be changed; `expected` and `found` are file states.

    `other` is the queue that is in the way, if one is.
    """

    kind: Kind
    patch: str
    path: str | None
    message: str
    expected: FileState | None = None
    found: FileState | None = None
    detail: str = ""
    other: str = ""

    def to_json(self) -> dict[str, object]:
        """Return the conflict as ``--json`` shows it."""
        return {
            "kind": self.kind.value,
            "patch": self.patch,
            "path": self.path,
            "message": self.message,
            "expected": self.expected and self.expected.to_json(),
            "found": self.found and self.found.to_json(),
            "detail": self.detail,
            "other": self.other or None,
        }


@dataclass(frozen=True, slots=True)
class Plan:
    """What a transaction would do: `entries` live → goal, `restored` from originals."""

    verb: str
    queue: str
    release: str
    patches: tuple[str, ...]
    entries: tuple[PathChange, ...] = ()
    restored: frozenset[str] = frozenset()
    stack: tuple[AppliedPatch, ...] = ()
    conflicts: tuple[Conflict, ...] = ()


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
        if here.patch != applied.sha256:
            return Conflict(
                Kind.CHANGED_PATCH,
                applied.patch,
                None,
                f"{applied.patch} was changed in the queue after it was pushed here",
            )
    return len(held)


def push(lock: Lock, queue: str, survey: Survey, goal: int) -> Plan:
    """Plan to apply the patches of a series up to `goal` (a count from the bottom)."""
    start = position(lock, queue, survey)
    if isinstance(start, Conflict):
        return Plan("push", queue, lock.release, (), conflicts=(start,))
    todo = lock.patches[start:goal]
    tree = recorded(survey.stack)
    first: dict[str, FileState] = {}
    conflicts: list[Conflict] = []
    stack = list(survey.stack)
    for patch in todo:
        conflicts += _misfits(patch, lock, queue, survey, first, tree)
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
    patch: LockedPatch, lock: Lock, queue: str, survey: Survey, first: _Tree, tree: _Tree
) -> list[Conflict]:
    """Return why a patch does not fit, path by path; `tree` is what lies below it."""
    out = []
    for change in patch.changes:
        found = survey.files.get(change.path)
        below = tree.get(change.path)
        if below is not None and below != change.before:
            out.append(_covered(patch, change, queue, survey, below))
        elif change.path not in first and live(survey, change.path) != (below or change.before):
            out.append(_misfit(patch, change, lock, survey, below or change.before))
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


def _misfit(
    patch: LockedPatch, change: PathChange, lock: Lock, survey: Survey, expected: FileState
) -> Conflict:
    """Tell drift, wrong release, partial, already there and order apart by content."""
    found = survey.files.get(change.path) or Found(change.path, "absent", ABSENT)
    kind, message = _kind(patch, change, lock, survey, found)
    return Conflict(kind, patch.name, change.path, message, expected, found.state)


def _kind(
    patch: LockedPatch, change: PathChange, lock: Lock, survey: Survey, found: Found
) -> tuple[Kind, str]:
    path = change.path
    if found.kind not in ("file", "link", "absent"):
        return Kind.REFUSED, f"{path} is a {found.kind}, not a file"
    if found.state == change.after:
        if all(live(survey, other.path) == other.after for other in patch.changes):
            return (
                Kind.ALREADY_THERE,
                f"{path} holds {patch.name} already, and no receipt of patchq's says who did that",
            )
        return Kind.PARTIAL, f"{path} has {patch.name} in it, other files of the patch do not"
    later = [
        other.name
        for other in lock.patches
        for done in other.changes
        if done.path == path and done.after == found.state
    ]
    if later:
        return Kind.ORDER, f"{path} is as after {later[-1]}, without what belongs below it"
    version = survey.installed.version if survey.installed else ""
    if public(version) != lock.release and found.recorded in (None, found.state.sha256):
        return (
            Kind.WRONG_RELEASE,
            f"{path} is as {version} installed it; this series is for {lock.release}",
        )
    if found.state == ABSENT:
        return Kind.DRIFT, f"{path} is missing; {patch.name} expects it"
    if change.before == ABSENT:
        return Kind.DRIFT, f"{path} exists; {patch.name} would create it"
    return Kind.DRIFT, f"{path} was edited by somebody: it is not what {patch.name} was made on"


def pop(queue: str, survey: Survey, keep: int) -> Plan:
    """Plan to take off this queue's patches until `keep` of them are left."""
    held = [applied for applied in survey.stack if applied.queue == queue]
    gone = held[keep:]
    release = held[-1].release if held else ""
    stack = tuple(applied for applied in survey.stack if applied not in gone)
    now, left = recorded(survey.stack), recorded(stack)
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
            if above is None and first[change.path] != now[change.path]:
                conflicts.append(
                    Conflict(
                        Kind.DRIFT,
                        applied.patch,
                        change.path,
                        f"{change.path} was edited after {applied.patch} was pushed",
                        now[change.path],
                        first[change.path],
                    )
                )
    restored = frozenset(path for path in first if path not in left)
    return Plan(
        "pop",
        queue,
        release,
        tuple(applied.patch for applied in reversed(gone)),
        _entries(first, goal, restored),
        restored,
        stack,
        tuple(conflicts),
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
