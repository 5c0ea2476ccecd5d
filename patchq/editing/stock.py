"""What a release ships, for patches that were made in its repository."""

from __future__ import annotations

from collections.abc import Sequence

from patchq.conversation import look, pristine, view
from patchq.conversation.desk import Desk
from patchq.queue import foreign, sifting
from patchq.queue.sifting import Shipped
from patchq.transport.channel import Conversation


def shipped(at: Desk, release: str, found: Sequence[foreign.Found]) -> Conversation[Shipped]:
    """Return what a release ships of what patches may be about.

    By the store, where it was fetched; else what the environment has, by its RECORD.
    """
    paths = pristine.shipped(at.aim.cache(), at.seen.queue.distribution, release)
    if paths:
        return Shipped.of(paths)
    every = [one for some in found for patch in some.patches for one in patch.cuts]
    wanted = sifting.candidates(every)
    folders = sorted({folder for path in wanted for folder in sifting.above(path)})
    want = view.Want(extra=(*wanted, *folders), more=("patches",))
    seen = yield from look.again(at.aim, at.seen, want)
    files = seen.survey.files
    mine = [path for path, one in files.items() if one.recorded is not None]
    tops = {path.partition("/")[0] for path in mine if "/" in path}
    there = {
        folder
        for folder in folders
        if files[folder].kind == "folder" and folder.partition("/")[0] in tops
    }
    return Shipped(frozenset(mine), frozenset(there | tops))
