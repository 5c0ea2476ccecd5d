"""capture: what somebody edited by hand in an environment becomes a patch of the queue."""

from __future__ import annotations

from collections.abc import Sequence

from patchq import standing
from patchq.conversation import desk, names, view
from patchq.conversation.commit import Ground
from patchq.conversation.desk import Desk
from patchq.editing import formed, making, refreshing
from patchq.errors import ExitCode, PatchqError
from patchq.model import PathChange, effect_id, sha256
from patchq.report import Report
from patchq.transport.channel import Conversation


def drifted(aim: view.Aim, ground: Ground) -> Conversation[Report]:
    """Return what was edited, with an id: environments with equal ids were edited alike."""
    at, paths = yield from _edited(aim, ground)
    changes = tuple(
        PathChange(path, at.recorded(path), standing.live(at.survey, path)) for path in paths
    )
    document = {
        "verb": "capture",
        "site": at.survey.site,
        "files": list(paths),
        "effect": effect_id(changes) if changes else None,
        "applied": [one.patch for one in at.seen.applied],
    }
    code = ExitCode.DONE if paths else ExitCode.NOTHING_TO_DO
    return Report(tuple(paths), () if paths else ("Nothing was edited",), document, code)


def _edited(aim: view.Aim, ground: Ground) -> Conversation[tuple[Desk, tuple[str, ...]]]:
    at = yield from desk.sit(aim, ground)
    loose = yield from desk.edits(at)
    at = yield from desk.again(at, loose)
    desk.check_places(at, loose)
    owned = [path for path in names.drifted(at.seen) if at.owner(path) is not None]
    return at, tuple(sorted({*owned, *loose}))


def capture(aim: view.Aim, ground: Ground, name: str) -> Conversation[Report]:
    """Make a patch above those that are on of all that was edited; it is on from then on.

    Raises:
        PatchqError: there is a patch of that name, an edited file is another queue's, or its
            release is not here.
    """
    at, paths = yield from _edited(aim, ground)
    if not paths:
        document = {"verb": "capture", "files": []}
        return Report((), ("Nothing was edited",), document, ExitCode.NOTHING_TO_DO)
    _check_owners(at, paths, name)
    if ground.dry_run:
        document = {"verb": "capture", "patch": name, "files": list(paths)}
        return Report(tuple(f"Would take {path} into {name}" for path in paths), (), document)
    yield from _can_be_told(at, paths)
    lines: tuple[str, ...] = ()
    top = at.seen.applied[-1] if at.seen.applied else None
    # One of that name that is on and was never refreshed is of a capture that was cut short.
    if top is None or top.patch != name or top.sha256 != sha256(b""):
        lines = (yield from making.new(aim, ground, name, 1)).lines
        top = None
    left = [path for path in paths if top is None or not desk.has(top, path)]
    added = yield from making.add(aim, ground, left, None, True)
    done = yield from refreshing.refresh(aim, ground, None, formed.How(take=False))
    lines = (*lines, *added.lines, *done.lines)
    document = {"verb": "capture", "patch": name, "files": list(paths)}
    return Report(lines, (*added.notes, *done.notes), document, done.exit_code)


def _check_owners(at: Desk, paths: Sequence[str], name: str) -> None:
    """Raise where another queue's patch has an edited file: its edits belong to that queue."""
    for path in paths:
        owner = at.owner(path)
        if owner is not None and owner.queue != at.seen.queue.name:
            raise PatchqError(
                f"{path} was edited, and is changed by {owner.patch} of queue {owner.queue}",
                why=f"a patch of {at.seen.queue.name} is made on the release, without that",
                mend=f"patchq capture {name} --queue {owner.queue}   # or: patchq restore {path}",
            )


def _can_be_told(at: Desk, paths: Sequence[str]) -> Conversation[None]:
    """Read what the files should be, before anything is written."""
    yield from desk.texts(at, len(at.stack), paths)
