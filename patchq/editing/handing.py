"""Files handed to an editor that runs here, and put back where they came from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from patchq import standing
from patchq.conversation import desk, view
from patchq.conversation.commit import Ground, Step
from patchq.errors import PatchqError
from patchq.model import FileState, PathChange, sha256
from patchq.report import Report
from patchq.transport.channel import Conversation


def look(aim: view.Aim, ground: Ground, paths: Sequence[str]) -> Conversation[Report]:
    """Return files as they are, in the report's document: for an editor."""
    at = yield from desk.sit(aim, ground, paths)
    files = {path: at.now(path) for path in paths}
    shown = {path: file and file[0].hex() for path, file in files.items()}
    return Report((), (), {"verb": "edit", "site": at.survey.site, "files": shown})


def texts_of(report: Report) -> dict[str, bytes | None]:
    """Return the files that `look` found."""
    files = report.document["files"]
    assert isinstance(files, dict)
    return {path: None if text is None else bytes.fromhex(text) for path, text in files.items()}


def put(
    aim: view.Aim,
    ground: Ground,
    new: Mapping[str, bytes],
    old: Mapping[str, bytes | None],
) -> Conversation[Report]:
    """Write edited files into the environment; they are in no patch before a refresh.

    Raises:
        PatchqError: a file was changed there since it was brought here.
    """
    at = yield from desk.sit(aim, ground, new)
    for path in new:
        there = at.now(path)
        if (there and there[0]) != old[path]:
            raise PatchqError(
                f"{path} was changed in {at.survey.site} while it was edited here",
                why="somebody else wrote to it meanwhile",
                mend=f"patchq edit {path}   # again, on what is there now",
            )
    steps = []
    for path, data in new.items():
        state = standing.live(at.survey, path)
        steps.append(Step(PathChange(path, state, FileState.of(data, state.executable))))
    blobs: dict[str, bytes] = {sha256(data): data for data in new.values()}
    patch = at.applied(None)
    yield from desk.settle(at, "edit", steps, at.stack, blobs, {"edit": (patch.patch,)})
    lines = tuple(f"File {path} edited; patchq refresh puts it into the patch" for path in new)
    return Report(lines, (), {"verb": "edit", "patch": patch.patch, "files": list(new)})
