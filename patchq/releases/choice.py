"""Which wheel is read: the one that pip would install in the environment.

Highest version that the requirement allows, then the wheel whose tags the
environment's Python likes best, then the highest build tag (pip, `_sort_key`). A yanked
wheel only for ``==``. The plain rule for another machine's environment: its Python's
version and its platform are named; its C library is taken to be new enough. Where no
wheel fits (a laptop that looks after Linux hosts), any serves, since only text is read:
said.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from packaging import tags
from packaging.requirements import Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from patchq.releases.pages import Candidate

_GLIBC = range(50, 4, -1)
_ALIASES = {17: "manylinux2014", 12: "manylinux2010", 5: "manylinux1"}


@dataclass(frozen=True, slots=True)
class Choice:
    """The wheels of one version: one per build tag, pip's choice first.

    `others` are the version's wheels for other Pythons and platforms.
    """

    wheels: tuple[Candidate, ...]
    others: tuple[Candidate, ...]
    notes: tuple[str, ...] = ()


def pinned(requirement: Requirement) -> Version | None:
    """Return the version that ``==`` names alone, None for any other requirement."""
    (only, *more) = requirement.specifier or (None,)
    if only is None or more or only.operator not in ("==", "===") or only.version.endswith(".*"):
        return None
    try:
        return Version(only.version)
    except InvalidVersion:
        return None  # === compares texts


def supported(python: str | None, platform: str | None) -> dict[tags.Tag, int]:
    """Return tag -> rank (0 is liked best) of a Python (``3.11``) on a platform (``aarch64``)."""
    numbers = (
        tuple(int(part) for part in python.split(".")[:2]) if python else sys.version_info[:2]
    )
    platforms = list(tags.platform_tags()) if platform is None else list(_platforms(platform))
    liked = [
        *tags.cpython_tags(numbers, platforms=platforms),
        *tags.compatible_tags(numbers, f"cp{numbers[0]}{numbers[1]}", platforms),
    ]
    ranks: dict[tags.Tag, int] = {}
    for rank, tag in enumerate(liked):
        ranks.setdefault(tag, rank)
    return ranks


def choose(
    candidates: Sequence[Candidate],
    requirement: Requirement,
    *,
    python: str | None = None,
    platform: str | None = None,
) -> Choice | None:
    """Return the wheels of the version that pip would install, None if there is none."""
    ranks = supported(python, platform)
    exact = pinned(requirement) is not None
    usable = [each for each in candidates if each.tags and (exact or each.yanked is None)]
    allowed = set(requirement.specifier.filter({each.version for each in usable}))
    fitting = [
        each
        for each in usable
        if each.version in allowed and _rank(each, ranks) is not None and _runs(each, python)
    ]
    pool = fitting or [each for each in usable if each.version in allowed]
    if not pool:
        return None
    version = max(each.version for each in pool)
    same = [each for each in pool if each.version == version]
    best = _per_build(same, ranks)
    rest = [each for each in usable if each.version == version and each not in best]
    return Choice(best, _distinct(rest, best), tuple(_notes(best[0], bool(fitting))))


def sdist(candidates: Sequence[Candidate], requirement: Requirement) -> Choice | None:
    """Return the newest source distribution that the requirement allows, None if there is none."""
    exact = pinned(requirement) is not None
    usable = [each for each in candidates if not each.tags and (exact or each.yanked is None)]
    allowed = set(requirement.specifier.filter({each.version for each in usable}))
    pool = [each for each in usable if each.version in allowed]
    if not pool:
        return None
    best = max(pool, key=lambda each: each.version)
    return Choice((best,), (), tuple(_notes(best, True)))


def _per_build(same: Iterable[Candidate], ranks: dict[tags.Tag, int]) -> tuple[Candidate, ...]:
    """Return the best wheel of each build tag, pip's choice first; of equals the first found."""

    def liking(each: Candidate) -> tuple[int, bool]:
        rank = _rank(each, ranks)
        return len(ranks) if rank is None else rank, _foreign(each)

    # Sorting is stable: tags weigh more than builds, builds more than places (as in pip).
    by_build = sorted(same, key=lambda each: each.build, reverse=True)
    best: dict[object, Candidate] = {}
    for each in sorted(by_build, key=liking):
        best.setdefault(each.build, each)
    return tuple(best.values())


def _distinct(rest: Iterable[Candidate], best: Sequence[Candidate]) -> tuple[Candidate, ...]:
    seen = {each.filename for each in best}
    return tuple({each.filename: each for each in rest if each.filename not in seen}.values())


def _rank(candidate: Candidate, ranks: dict[tags.Tag, int]) -> int | None:
    return min((ranks[tag] for tag in candidate.tags if tag in ranks), default=None)


def _foreign(candidate: Candidate) -> bool:
    """Return True unless the wheel is for the commonest of servers."""
    return not any("linux" in tag.platform and "x86_64" in tag.platform for tag in candidate.tags)


def _runs(candidate: Candidate, python: str | None) -> bool:
    if candidate.requires_python is None:
        return True
    version = python or ".".join(map(str, sys.version_info[:3]))
    try:
        return SpecifierSet(candidate.requires_python).contains(version, prereleases=True)
    except InvalidSpecifier:
        return True  # as pip: a broken requirement is passed over


def _notes(candidate: Candidate, fits: bool) -> Iterable[str]:
    if candidate.yanked is not None:
        reason = f": {candidate.yanked}" if candidate.yanked else ""
        yield f"{candidate.filename} was yanked from the index{reason}"
    if not fits:
        yield f"no wheel fits this Python and platform; read {candidate.filename}"


def _platforms(platform: str) -> Iterable[str]:
    """Yield the wheel platforms of a Linux machine (PEP 600), newest C library first."""
    machine = platform.removeprefix("linux_")
    if not platform.startswith("linux_") and platform.startswith(("macosx", "win", "manylinux")):
        yield platform
        return
    for minor in _GLIBC:
        yield f"manylinux_2_{minor}_{machine}"
        if minor in _ALIASES:
            yield f"{_ALIASES[minor]}_{machine}"
    yield f"linux_{machine}"
