"""Files that are not as the record or the release says, shown: what differs, and since when."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import replace

from patchq import misfit, standing
from patchq.conversation import files, look, view
from patchq.engine import diff
from patchq.errors import PatchqError
from patchq.model import Sha256
from patchq.plan import Conflict, Kind
from patchq.transport.channel import Conversation


def shown(
    aim: view.Aim, seen: view.Sight, conflicts: Sequence[Conflict]
) -> Conversation[tuple[Conflict, ...]]:
    """Return conflicts, those about files on the record with a diff against what it says.

    The environment is asked for more only where a recorded file drifted.
    """
    says = standing.recorded(seen.applied)
    paths = [
        one.path
        for one in conflicts
        if one.kind is Kind.DRIFT and one.path in says and not one.detail
    ]
    if not paths:
        return tuple(conflicts)
    try:
        texts = yield from _differences(aim, seen, [path for path in paths if path])
    except PatchqError as error:  # the record itself is not whole: the drift stays one
        texts = dict.fromkeys(map(str, paths), f"no diff: {error.what} ({error.why})")
    return tuple(
        replace(one, detail=texts[one.path]) if one.path in paths and one.path else one
        for one in conflicts
    )


def _differences(
    aim: view.Aim, seen: view.Sight, paths: list[str]
) -> Conversation[Mapping[str, str]]:
    stack = seen.survey.stack
    if any(applied.sha256 not in seen.texts for applied in stack):
        want = view.Want(more=("patches",))
        _, reply = yield from look.survey(aim, seen.queue.distribution, (), want)
        seen = replace(seen, texts=reply.blobs)
    before = yield from files.rebuild(aim, seen, stack, paths)
    after = yield from files.read(aim, seen, paths)
    out = {}
    for path in paths:
        file = before[path]
        text = diff.unified(None if file is None else file[0], after[path], path)
        shown = f"against what the record says:\n{text.decode('utf-8', 'replace')}".rstrip()
        out[path] = shown if text else "its bytes are as recorded, its mode is not"
    return out


def dated(aim: view.Aim, seen: view.Sight, conflicts: Sequence[Conflict]) -> tuple[Conflict, ...]:
    """Return conflicts, those about files of an older commit of the queue with its name.

    Git is asked only where files differ and none of the queue's patches is recorded.
    """
    told = (Kind.DRIFT, Kind.PARTIAL)
    if seen.applied or not any(one.kind in told for one in conflicts):
        return tuple(conflicts)
    from patchq.queue.history import History  # git, for a push that does not fit

    history = aim.shared.once(
        ("history", seen.queue.folder), functools.partial(History, seen.queue)
    )
    for past in history.past(seen.release):
        reach = misfit.prefix(past.lock, seen.survey)
        if not reach:
            continue
        paths = {path for patch in past.lock.patches[:reach] for path in patch.paths}
        name = past.lock.patches[reach - 1].name
        commit, ago = past.commit[:12], "1 commit" if past.back == 1 else f"{past.back} commits"
        return tuple(
            replace(
                one,
                kind=Kind.ALREADY_THERE,
                message=f"{one.path} is as after {name} of commit {commit} already ({ago} of"
                " this queue ago), and no receipt of patchq's says who did that",
            )
            if one.kind in told and one.path in paths
            else one
            for one in conflicts
        )
    return tuple(conflicts)


def own(seen: view.Sight, path: str, digest: Sha256 | None) -> bool:
    """Return whether a file is the installed release's own text, by RECORD, and not the lock's.

    A push keeps RECORD true, so RECORD alone does not tell a build's text from a patch's:
    the build must be another one than the series is for.
    """
    have, found = seen.survey.installed, seen.survey.files.get(path)
    if have is None or found is None or have.version == seen.release:
        return False
    stacked = standing.recorded(seen.survey.stack)
    return path not in stacked and digest is not None and found.recorded == digest
