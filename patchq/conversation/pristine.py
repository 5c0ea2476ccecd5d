"""Pristine text of a release, where it was fetched: for what a host can not show."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from patchq.errors import PatchqError


def texts(cache: Path, distribution: str, release: str, paths: Iterable[str]) -> dict[str, bytes]:
    """Return the release's bytes at `paths`; empty where it was never fetched."""
    from patchq.releases.store import Store

    store = Store(distribution, cache / "releases")
    if not store.path.is_dir() or not store.has(release):
        return {}
    return {path: data for path, (data, _) in store.read_many(release, paths).items()}


def unknown(distribution: str, release: str) -> PatchqError:
    """Return the error for a release whose text is needed and not here."""
    return PatchqError(
        f"the pristine text of {distribution} {release} is not here",
        why="the environment keeps no original of a file that no patch touched",
        mend=f"patchq fetch {distribution}=={release}",
    )
