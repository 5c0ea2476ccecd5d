"""`fetch --into`: a release's text as a folder that Python can take for site-packages.

Text files as pip would install them, and the wheel's dist-info with INSTALLER and a
RECORD that is true for what is there (binaries are not, so nothing imports that
needs them). The folder appears whole or not at all. Bytes come from git's objects;
no checkout, no attributes, no filters.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from patchq.errors import UsageError
from patchq.releases import record
from patchq.releases.store import Store

# What the index or a signer said of the wheel is not true of what is laid out.
_DROPPED = ("RECORD", "RECORD.jws", "RECORD.p7s", "INSTALLER", "REQUESTED", "direct_url.json")


class LayoutError(UsageError):
    """The folder to lay a release out in is taken, or cannot be made."""


def lay_out(store: Store, release: str, target: Path) -> int:
    """Write the release's text and dist-info below `target`, return the number of files.

    Raises: `LayoutError` where `target` holds something; `StoreError`.
    """
    _refuse_taken(target)
    files, executable = _text(store, release)
    info = _dist_info(store, release)
    files |= info
    if info:
        name = next(iter(info)).partition("/")[0]
        own = f"{name}/RECORD"
        files[own] = record.format(sorted(files.items()), own)
    try:
        _place(target, files, executable)
    except OSError as error:
        raise LayoutError(
            f"{target} could not be laid out",
            why=str(error),
            mend=f"name a folder that can be made: patchq fetch {store.distribution} --into DIR",
        ) from error
    return len(files)


def _refuse_taken(target: Path) -> None:
    if target.is_symlink() or (target.exists() and (not target.is_dir() or any(target.iterdir()))):
        raise LayoutError(
            f"{target} is not an empty folder",
            why="a release is laid out only where nothing is",
            mend="name a folder that does not exist yet",
        )


def _text(store: Store, release: str) -> tuple[dict[str, bytes], set[str]]:
    with store:
        found = store.read_many(release, store.listing(release))
    executable = {path for path, (_, runs) in found.items() if runs}
    return {path: data for path, (data, _) in found.items()}, executable


def _dist_info(store: Store, release: str) -> dict[str, bytes]:
    """Return the dist-info files of the first wheel that gave the release."""
    notes = store.wheels(release)
    if not notes:
        return {}
    kept = store.dist_info(notes[0])
    info = {path: data for path, data in kept.items() if path.partition("/")[2] not in _DROPPED}
    name = next(iter(kept)).partition("/")[0]
    return info | {f"{name}/INSTALLER": b"patchq\n"}


def _place(target: Path, files: Mapping[str, bytes], executable: set[str]) -> None:
    """Write all into a folder beside `target`, then rename it."""
    target.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix=".patchq-", dir=target.parent))
    try:
        mask = os.umask(0)
        os.umask(mask)
        fresh.chmod(0o777 & ~mask)
        for path, data in files.items():
            place = fresh / path
            place.parent.mkdir(parents=True, exist_ok=True)
            with place.open("xb") as file:
                file.write(data)
            if path in executable:
                place.chmod(0o777 & ~mask)
        fresh.rename(target)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
