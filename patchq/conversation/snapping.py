"""Remember a plain tree's patched files as they are, to compare them later: quilt's snapshot."""

from __future__ import annotations

from pathlib import Path

from patchq.conversation import judging, look, view
from patchq.errors import QuiltError
from patchq.queue import snapshot
from patchq.report import Report
from patchq.transport.channel import Conversation


def take(aim: view.Aim) -> Conversation[Report]:
    """Remember the files of all patches that are on, as they are now."""
    seen = yield from look.sight(aim, view.Want(contents=True), need=view.Need.RECORD)
    paths = dict.fromkeys(c.path for one in seen.applied for c in one.changes)
    snapshot.save(Path(seen.survey.site), judging.tree_of(seen.survey, tuple(paths)))
    return Report((), (), {"verb": "snapshot", "files": list(paths)})


def drop(aim: view.Aim) -> Conversation[Report]:
    """Take the snapshot away."""
    seen = yield from look.sight(aim, view.Want(series="made"), need=view.Need.RECORD)
    there = snapshot.drop(Path(seen.survey.site))
    return Report((), (), {"verb": "snapshot", "removed": there})


def kept(aim: view.Aim) -> dict[str, snapshot.File | None]:
    """Return the files of the snapshot of the tree that a verb is about.

    Raises:
        QuiltError: there is none.
    """
    found = snapshot.load(Path(aim.target)) if aim.tree and aim.target else None
    if found is None:
        raise QuiltError(
            "No snapshot to diff against",
            why="a snapshot is of a plain tree, and is taken beforehand",
            mend="patchq snapshot --tree .",
        )
    return found
