"""The beginning of a rebase: where it reads and writes, what is carried from where."""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from patchq.errors import PatchqError, UsageError
from patchq.queue import series as series_file
from patchq.queue import store as queues
from patchq.rebase.memory import Memory
from patchq.rebase.progress import Folder, Progress
from patchq.releases import names


@dataclass(frozen=True)
class Places:
    """Where a rebase reads and writes: the user's `cache` and `state` folders, and its queue."""

    queue: queues.Queue
    cache: Path
    state: Path

    @cached_property
    def folder(self) -> Folder:
        """The folder of this queue's rebase in progress."""
        return Folder(self.state, self.queue.folder)

    @property
    def memory(self) -> Memory:
        """The resolutions that are remembered for this distribution."""
        return Memory(self.state / "resolutions" / names.canonical(self.queue.distribution))


def begin(
    places: Places, onto: str, source: str | None, *, replace_it: bool, partial: bool = False
) -> Progress:
    """Return a new rebase, not on disk yet.

    `replace_it`: the new series may be there; `partial`: the old one may lack a patch.

    Raises:
        UsageError: one is in progress, there is nothing to carry, the new series is there,
            or the old one lacks what the release needs.
    """
    queue = places.queue
    if places.folder.load() is not None:
        raise UsageError(
            f"a rebase of {queue.name} is in progress",
            why=f"it waits in {places.folder.path}",
            mend="patchq rebase --continue; or --abort",
        )
    for named in (onto, source or onto):
        if not names.is_release(named) or names.version(named) is None:
            raise UsageError(
                f"{named!r} names no release",
                why="a release is named by its version: 0.17.0",
                mend=f"patchq rebase --onto {named.rpartition('=')[2] or 'RELEASE'}",
            )
    source = source or nearest(queue, onto)
    if source == onto or source not in queue.releases:
        raise UsageError(
            f"queue {queue.name} has no series to carry from {source}",
            why=f"it has series for {', '.join(queue.releases) or 'no release'}",
            mend=f"patchq rebase --onto {onto} --from RELEASE",
        )
    if onto in queue.releases and not replace_it:
        raise UsageError(
            f"queue {queue.name} has a series for {onto} already",
            why=f"{queue.folder / onto} would be replaced",
            mend=f"patchq rebase --onto {onto} --from {source} -n; with --force it is replaced",
        )
    if not partial:
        _complete(queue, source, onto)
    return asked(queue, source, onto)


def _complete(queue: queues.Queue, source: str, onto: str) -> None:
    """Refuse a series that lacks what `queue.toml` says that the new release needs."""
    has = {
        release: {Path(entry.name).stem for entry in queues.series(queue, release).entries}
        for release in queue.releases
    }
    asked_for = [
        stem for stem, note in queue.patches.items() if note.releases and note.needed(onto)
    ]
    missing = [stem for stem in asked_for if stem not in has[source]]
    if missing:
        better = [release for release in has if has[release].issuperset(missing)]
        raise UsageError(
            f"the series for {source} lacks {', '.join(missing)}",
            why=f"queue.toml says that {onto} needs it",
            mend=f"patchq rebase --onto {onto} --from {better[-1] if better else 'RELEASE'}; "
            "or --force, and add it yourself",
        )


def asked(queue: queues.Queue, source: str, onto: str) -> Progress:
    """Return a rebase of which nothing is done yet."""
    return Progress(str(queue.folder.resolve()), source, onto, digest(queue, source))


def nearest(queue: queues.Queue, onto: str) -> str:
    """Return the newest older release that has a series, else the oldest newer one."""
    others = [one for one in queue.releases if one != onto]
    older = [one for one in others if names.order(one) < names.order(onto)]
    if not others:
        raise UsageError(
            f"queue {queue.name} has no series to carry",
            why=f"it has series for {', '.join(queue.releases) or 'no release'}",
            mend="patchq rebase --onto RELEASE, which must be another one",
        )
    return older[-1] if older else others[0]


def digest(queue: queues.Queue, release: str) -> str:
    """Return a digest of a series: what must not change meanwhile. Sketches may."""
    digest = hashlib.sha256()
    for patch in queues.load(queue, release).patches:
        options = series_file.options(patch.strip, patch.reverse)
        # Filled in at the end of a rebase, which may be killed there and go on.
        text = re.sub(rb"^Applied-Upstream:.*\n", b"", patch.text, flags=re.MULTILINE)
        for part in (patch.name.encode(), options.encode(), text):
            digest.update(b"%d\0" % len(part) + part)
    return digest.hexdigest()


def writable(queue: queues.Queue) -> None:
    """Refuse a queue that cannot be written, before any work is done."""
    if not os.access(queue.folder, os.W_OK):
        raise PatchqError(
            f"{queue.folder} cannot be written",
            why="the new series would be put there",
            mend=f"cp -r {queue.folder} queues/, and name that one: --queue queues/{queue.name}",
        )
