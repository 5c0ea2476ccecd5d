"""`patchq range-diff`: how the series of two releases differ, patch by patch."""

from __future__ import annotations

from collections.abc import Iterator

from patchq.model import Patch
from patchq.queue import store as queues
from patchq.rebase import rendered
from patchq.report import Report


def compare(queue: queues.Queue, old: str, new: str) -> Report:
    """Return each patch of both series as git range-diff marks it: ``= ! < >``.

    Raises:
        UsageError: the queue has no such series.
    """
    sides = [queues.load(queue, release).patches for release in (old, new)]
    rows = list(_rows(*sides))
    lines = []
    for mark, name, changed in rows:
        lines.append(f"{mark} {name}")
        lines += [f"    {line}" for line in changed.splitlines()]
    patches = [{"patch": name, "mark": mark, "changed": changed} for mark, name, changed in rows]
    document = {
        "verb": "range-diff",
        "queue": queue.name,
        "old": old,
        "new": new,
        "patches": patches,
    }
    return Report(tuple(lines), document=document)


def _rows(old: tuple[Patch, ...], new: tuple[Patch, ...]) -> Iterator[tuple[str, str, str]]:
    """Yield (mark, name, diff of diffs): those of the new series in order, then those gone."""
    known = {patch.stem: patch for patch in old}
    for patch in new:
        was = known.pop(patch.stem, None)
        if was is None:
            yield ">", patch.name, ""
        else:
            changed = rendered.changed(was, patch)
            yield "!" if changed else "=", patch.name, changed
    for patch in known.values():
        yield "<", patch.name, ""
