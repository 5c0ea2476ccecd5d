"""restore: what somebody edited is again as the record says, or as the release has it."""

from __future__ import annotations

from collections.abc import Sequence

from patchq import standing
from patchq.conversation import desk, names, view
from patchq.conversation.commit import Ground, Step
from patchq.editing import making
from patchq.errors import ExitCode, PatchqError
from patchq.model import PathChange
from patchq.report import Report
from patchq.transport.channel import Conversation


def restore(
    aim: view.Aim, ground: Ground, paths: Sequence[str], everything: bool
) -> Conversation[Report]:
    """Put files back as they should be: with the applied patches, or as released.

    `everything`: all that was edited. Files that somebody made beside the release's are not
    touched unless they are named.

    Raises:
        PatchqError: a file is not known, or the release's text is not here.
    """
    at = yield from desk.sit(aim, ground, paths)
    if everything:
        loose = yield from desk.edits(at)
        at = yield from desk.again(at, loose)
        owned = [path for path in names.drifted(at.seen) if at.owner(path) is not None]
        listed = [path for path in loose if at.original(path).sha256 is not None]
        paths = tuple(sorted({*owned, *listed}))
    unknown = [path for path in paths if not everything and not _known(at, path)]
    if unknown:
        raise PatchqError(
            f"{unknown[0]} is no file of {at.survey.site}",
            why="it is not there, and RECORD does not list it",
            mend="patchq status   # names the files that were edited",
        )
    edited = [path for path in dict.fromkeys(paths) if at.edited(path)]
    document = {"verb": "restore", "site": at.survey.site, "files": edited}
    if not edited:
        return Report((), ("Nothing to restore",), document, ExitCode.NOTHING_TO_DO)
    if ground.dry_run:
        return Report(tuple(f"Would restore {path}" for path in edited), (), document)
    files = yield from desk.texts(at, len(at.stack), edited)
    steps = []
    for path in edited:
        change = PathChange(path, standing.live(at.survey, path), at.recorded(path))
        steps.append(Step(change, "write" if at.owner(path) else "restore"))
    blobs = making.contents(at, steps, files.values())
    yield from desk.settle(at, "restore", steps, at.stack, blobs, {})
    gone = {path for path in edited if at.recorded(path).sha256 is None}
    lines = tuple(f"{'Removing' if path in gone else 'Restoring'} {path}" for path in edited)
    return Report(lines, (), document)


def _known(at: desk.Desk, path: str) -> bool:
    return (
        at.owner(path) is not None
        or at.original(path).sha256 is not None
        or standing.live(at.survey, path).sha256 is not None
    )
