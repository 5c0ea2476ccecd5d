"""The form of a patch's file, as `refresh` was asked for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from patchq.conversation.desk import Desk, File
from patchq.editing import basing
from patchq.engine import diffstat, patchtext, quiltdiff
from patchq.model import AppliedPatch, FileState
from patchq.queue import headers


@dataclass(frozen=True, slots=True)
class How:
    """The options of `refresh`; `strip` is quilt's ``-p``, None for the form that is usual.

    `take`: edits that no patch has go into it, too. `fork`: into a new patch of that name
    ("" for the next free one), instead of into the top one.
    """

    strip: str | None = None
    context: int = 3
    index: bool = True
    sort: bool = False
    diffstat: bool = False
    whitespace: bool = False
    backup: bool = False
    force: bool = False
    take: bool = True
    fork: str | None = None


def written(
    at: Desk,
    patch: AppliedPatch,
    before: Mapping[str, File | None],
    after: Mapping[str, File | None],
    how: How,
) -> bytes:
    """Return a patch's file: its header as it is, then the diffs in the form that is asked for."""
    header = basing.header(at, patch)
    listed = basing.entry(at, patch)
    strip = how.strip or (str(listed.strip) if at.seen.tree and listed else None)
    if strip is None:
        body = patchtext.patch(b"", before, after, {}, context=how.context)
    else:
        top = at.seen.queue.folder.name
        body = b"".join(
            quiltdiff.render(
                (before[path] or (None,))[0],
                (after[path] or (None,))[0],
                path,
                strip=strip,
                top=top,
                context=how.context,
                index=how.index,
            )
            for path in after
        )
    if how.diffstat:
        counts = [
            diffstat.count(path, (before[path] or (None,))[0], (file or (None,))[0])
            for path, file in after.items()
            if before[path] != file
        ]
        header = headers.with_diffstat(header, diffstat.drawn(counts))
    return header + body


def state_of(file: File | None) -> FileState:
    """Return the state of a file, absent for None."""
    return FileState.of(*(file or (None,)))
