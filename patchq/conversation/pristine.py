"""Pristine text of a release, where it was fetched: for what a host can not show."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from patchq.errors import PatchqError


def texts(cache: Path, distribution: str, release: str, paths: Iterable[str]) -> dict[str, bytes]:
    """Return the release's bytes at `paths`; empty where it was never fetched."""
    found = files(cache, distribution, release, paths)
    return {path: data for path, (data, _) in found.items()}


def files(
    cache: Path, distribution: str, release: str, paths: Iterable[str]
) -> dict[str, tuple[bytes, bool]]:
    """Return the release's files at `paths`: bytes, and whether it is executable."""
    paths = tuple(paths)
    if not paths:  # no git process for each of many hosts
        return {}
    from patchq.releases.store import Store

    store = Store(distribution, cache / "releases")
    if not store.path.is_dir() or not store.has(release):
        return {}
    return dict(store.read_many(release, paths))


def shipped(cache: Path, distribution: str, release: str) -> frozenset[str]:
    """Return every path that the release installs; none where it was never fetched."""
    from patchq.releases.store import Store

    store = Store(distribution, cache / "releases")
    if not store.path.is_dir() or not store.has(release):
        return frozenset()
    with store:
        return store.installed(release) | store.listing(release).keys()


def unknown(distribution: str, release: str) -> PatchqError:
    """Return the error for a release whose text is needed and not here."""
    return PatchqError(
        f"the pristine text of {distribution} {release} is not here",
        why="the environment keeps no original of a file that no patch touched",
        mend=f"patchq fetch {distribution}=={release}",
    )
