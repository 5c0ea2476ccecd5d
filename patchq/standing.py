"""Where an environment stands: its files as they are, as recorded, as released.

Pure, like `patchq.plan`, which builds on it. Which release's series fits is
decided by content first; a version string only decides where contents tie.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from patchq.model import ABSENT, AppliedPatch, FileState, Lock, Survey, effect_id


@dataclass(frozen=True, slots=True)
class Choice:
    """The series that fits: its release, how it was found, other releases with equal effect."""

    release: str
    how: str
    also: tuple[str, ...] = ()


def live(survey: Survey, path: str) -> FileState:
    """Return what is at a path now."""
    found = survey.files.get(path)
    return found.state if found is not None else ABSENT


def pristine(survey: Survey, path: str) -> FileState:
    """Return what was at a path below everything that is recorded."""
    for applied in survey.stack:
        for change in applied.changes:
            if change.path == path:
                return change.before
    return live(survey, path)


def recorded(stack: Iterable[AppliedPatch]) -> dict[str, FileState]:
    """Return each path as the stack says that it is."""
    return {change.path: change.after for applied in stack for change in applied.changes}


def public(version: str) -> str:
    """Return a version without its local part, as releases are named."""
    return version.partition("+")[0]


def choose(locks: Mapping[str, Lock | None], queue: str, survey: Survey) -> Choice | None:
    """Return the series that fits by record, else by content, else by version.

    Content comes before any version string; several series that fit are one
    choice where their effect is equal, and else the installed version decides
    (design: "Which series fits an environment is decided by content first").
    """
    if survey.installed is None:
        return None
    version = public(survey.installed.version)
    held = [applied.release for applied in survey.stack if applied.queue == queue]
    if held:
        return Choice(held[-1], "record")
    fits = {
        release: _effect(lock)
        for release, lock in locks.items()
        if lock is not None and _fits(lock, survey)
    }
    if fits and (version in fits or len(set(fits.values())) == 1):
        release = version if version in fits else max(fits, key=_release_key)
        also = tuple(r for r in fits if r != release and fits[r] == fits[release])
        return Choice(release, "content", also)
    return Choice(version, "version") if version in locks else None


def _effect(lock: Lock) -> str:
    return effect_id(change for patch in lock.patches for change in patch.changes)


def _release_key(release: str) -> tuple[int, ...]:
    return tuple(int(part) for part in release.split(".") if part.isdigit())


def _fits(lock: Lock, survey: Survey) -> bool:
    """True where the environment holds the base, or every file of some prefix of the series."""
    base = lock.base
    if not any(state.sha256 for state in base.values()):
        return False  # absence alone proves nothing
    tree = dict(base)
    if all(pristine(survey, path) == state for path, state in base.items()):
        return True
    for patch in lock.patches:
        tree.update((change.path, change.after) for change in patch.changes)
        if all(live(survey, path) == state for path, state in tree.items()):
            return True
    return False
