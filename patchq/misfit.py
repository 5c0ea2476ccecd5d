"""Why a patch does not fit where it should go: one kind for each reason, told by content.

Pure, like `patchq.plan`, which asks.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from patchq.model import ABSENT, FileState, Found, Lock, LockedPatch, PathChange, Survey
from patchq.standing import live, public


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


_NOBODY = "and no receipt of patchq's says who did that"


def prefix(lock: Lock, survey: Survey, start: int = 0) -> int:
    """Return after how many patches of a series the files are as they are, 0 for none.

    The lowest `start` are on by the record; counted are those above that nobody recorded.
    """
    for number in range(len(lock.patches), start, -1):
        changes = [change for patch in lock.patches[start:number] for change in patch.changes]
        tree = {change.path: change.after for change in changes}
        below: dict[str, FileState] = {}
        for change in changes:
            below.setdefault(change.path, change.before)
        if (
            tree != below
            and any(state.sha256 for state in tree.values())
            and all(path in survey.files for path in tree)
            and all(live(survey, path) == state for path, state in tree.items())
        ):
            return number
    return 0


def misfit(
    patch: LockedPatch,
    change: PathChange,
    lock: Lock,
    survey: Survey,
    expected: FileState,
    reach: int,
) -> Conflict:
    """Tell drift, wrong release, partial and already there apart by content.

    `reach`: after how many patches of the series the files are as they are (`prefix`).
    """
    found = survey.files.get(change.path) or Found(change.path, "absent", ABSENT)
    kind, message = _kind(patch, change, lock, survey, found, reach)
    return Conflict(kind, patch.name, change.path, message, expected, found.state)


def _kind(
    patch: LockedPatch,
    change: PathChange,
    lock: Lock,
    survey: Survey,
    found: Found,
    reach: int,
) -> tuple[Kind, str]:
    path = change.path
    if found.kind not in ("file", "link", "absent"):
        return Kind.REFUSED, f"{path} is a {found.kind}, not a file"
    there = _there(patch, change, lock, survey, reach)
    if there is not None:
        return there
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


def _there(
    patch: LockedPatch, change: PathChange, lock: Lock, survey: Survey, reach: int
) -> tuple[Kind, str] | None:
    """Return what is said of a file that a patch of the series left so, without a record."""
    path, now = change.path, live(survey, change.path)
    names = [one.name for one in lock.patches]
    if names.index(patch.name) < reach:
        return Kind.ALREADY_THERE, f"{path} is as after {names[reach - 1]} already, {_NOBODY}"
    if all(live(survey, other.path) == other.after for other in patch.changes):
        return Kind.ALREADY_THERE, f"{path} holds {patch.name} already, {_NOBODY}"
    ends = [
        one.name
        for one in lock.patches
        if any(done.path == path and done.after == now for done in one.changes)
    ]
    if not ends:
        return None
    name = patch.name if now == change.after else ends[-1]
    return Kind.PARTIAL, f"{path} has {name} in it, other files do not, {_NOBODY}"
