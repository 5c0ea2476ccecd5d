"""The sketches of a queue, apart from any series: for releases that have none."""

from __future__ import annotations

from patchq.queue import reading
from patchq.queue.store import SHARED, Queue


def load(queue: Queue, release: str | None) -> dict[str, tuple[str, bytes]]:
    """Return stem -> (name in the queue, text), by name.

    These are the shared ones, and where `release` has its own, those in their place.
    """
    folders = [SHARED] if release is None else [SHARED, release]
    found = {}
    for folder in folders:
        for path in (queue.folder / folder).glob("*.pyi"):
            text = reading.read(path)
            if text is not None:
                found[path.stem] = (f"{folder}/{path.name}", text)
    return dict(sorted(found.items()))
