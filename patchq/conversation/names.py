"""Looking without touching, quilt's way: bare names, one a line; and the status.

Nothing here reads a patch's text but for the files of one that is not applied.
"""

from __future__ import annotations

from patchq import standing
from patchq.conversation import look
from patchq.conversation.goal import Upto
from patchq.errors import ExitCode
from patchq.queue import store
from patchq.report import Report
from patchq.transport.channel import Conversation


def _bare(verb: str, seen: look.Sight, names: list[str], **more: object) -> Report:
    release = seen.choice.release if seen.choice else None
    document = {
        "verb": verb,
        "queue": seen.queue.name,
        "release": release,
        "patches": names,
        **more,
    }
    return Report(tuple(names), interrupted(seen), document)


def interrupted(seen: look.Sight) -> tuple[str, ...]:
    """Return the note that every verb adds where a transaction was cut short."""
    if not seen.survey.interrupted:
        return ()
    return ("interrupted: a transaction was cut short; mend: patchq recover",)


def nothing(verb: str, seen: look.Sight, message: str, code: ExitCode) -> Report:
    """Return the outcome of a question that has no answer here."""
    document = {"verb": verb, "queue": seen.queue.name, "patches": [], "message": message}
    return Report((), (message, *interrupted(seen)), document, code)


def series(aim: look.Aim, marked: bool) -> Conversation[Report]:
    """Name the patches of the series that fits; `marked` shows ``+`` applied, ``=`` top."""
    seen = yield from look.sight(aim)
    names = list(seen.names)
    count = len(seen.applied)
    report = _bare("series", seen, names, applied=[a.patch for a in seen.applied])
    if not marked:
        return report
    marks = ["=" if i == count - 1 else "+" if i < count else " " for i in range(len(names))]
    lines = tuple(f"{mark} {name}" for mark, name in zip(marks, names, strict=True))
    return Report(lines, (), report.document)


def applied(aim: look.Aim, upto: str | None) -> Conversation[Report]:
    """Name the applied patches, bottom to top, up to one of them."""
    seen = yield from look.sight(aim)
    names = [one.patch for one in seen.applied]
    if upto is not None:
        names = names[: Upto(upto).index(names, "applied") + 1]
    if not names:
        return nothing("applied", seen, "No patches applied", ExitCode.FAILED)
    return _bare("applied", seen, names)


def unapplied(aim: look.Aim, after: str | None) -> Conversation[Report]:
    """Name the patches above the top, or above a given one."""
    seen = yield from look.sight(aim)
    names = list(seen.names)
    start = len(seen.applied)
    if after is not None:
        start = Upto(after).index(names, "in series") + 1
    if start >= len(names):
        return nothing("unapplied", seen, _full(names), ExitCode.FAILED)
    return _bare("unapplied", seen, names[start:])


def _full(names: list[str]) -> str:
    return (
        f"File series fully applied, ends at patch {names[-1]}"
        if names
        else "No patches in series"
    )


def top(aim: look.Aim) -> Conversation[Report]:
    """Name the top patch."""
    seen = yield from look.sight(aim)
    if not seen.applied:
        return nothing("top", seen, "No patches applied", ExitCode.NOTHING_TO_DO)
    return _bare("top", seen, [seen.applied[-1].patch])


def next_(aim: look.Aim, after: str | None) -> Conversation[Report]:
    """Name the patch above the top, or above a given one."""
    seen = yield from look.sight(aim)
    names = list(seen.names)
    at = len(seen.applied)
    if after is not None:
        at = Upto(after).index(names, "in series") + 1
    if at >= len(names):
        return nothing("next", seen, _full(names), ExitCode.NOTHING_TO_DO)
    return _bare("next", seen, [names[at]])


def previous(aim: look.Aim, before: str | None) -> Conversation[Report]:
    """Name the patch below the top, or below a given one."""
    seen = yield from look.sight(aim)
    names = list(seen.names)
    at = len(seen.applied) - 1
    if before is not None:
        at = Upto(before).index(names, "in series")
    elif at < 0:
        return nothing("previous", seen, "No patches applied", ExitCode.FAILED)
    if at < 1:
        return nothing("previous", seen, "There is no patch below", ExitCode.NOTHING_TO_DO)
    return _bare("previous", seen, [names[at - 1]])


def files(aim: look.Aim, name: str | None, every: bool) -> Conversation[Report]:
    """Name the files of the top patch, of a named one, or of all applied ones."""
    seen = yield from look.sight(aim)
    by_name = {one.patch: [c.path for c in one.changes] for one in seen.applied}
    if every:
        paths = sorted({path for some in by_name.values() for path in some})
        return Report(
            tuple(paths), (), {"verb": "files", "queue": seen.queue.name, "files": paths}
        )
    if name is None:
        if not seen.applied:
            return nothing("files", seen, "No patches applied", ExitCode.FAILED)
        name = seen.applied[-1].patch
    names = list(seen.names)
    name = names[Upto(name).index(names, "in series")]
    if name not in by_name:
        loaded = store.load(seen.queue, seen.release).patches
        by_name[name] = [p for one in loaded if one.name == name for p in one.paths]
    document = {"verb": "files", "queue": seen.queue.name, "patch": name, "files": by_name[name]}
    return Report(tuple(by_name[name]), (), document)


def status(aim: look.Aim) -> Conversation[Report]:
    """Say what is installed where, which series fits, and how far it is applied."""
    seen = yield from look.sight(aim)
    have, survey, choice = seen.survey.installed, seen.survey, seen.choice
    assert have is not None
    lines = [f"{have.name} {have.version} in {survey.site} (Python {survey.python})"]
    document: dict[str, object] = {
        "verb": "status",
        "distribution": have.name,
        "version": have.version,
        "site": survey.site,
        "python": survey.python,
        "queue": seen.queue.name,
        "release": choice.release if choice else None,
        "chosen": choice.how if choice else None,
        "also": list(choice.also) if choice else [],
        "stack": [applied.to_json() for applied in survey.stack],
        "interrupted": survey.interrupted,
        "orphaned": survey.orphaned,
        "refusal": survey.refusal,
    }
    if choice:
        lines.append(f"queue {seen.queue.name}, series {choice.release} (chosen by {choice.how})")
        count, names = len(seen.applied), list(seen.names)
        marks = ["=" if i == count - 1 else "+" if i < count else " " for i in range(len(names))]
        lines += [f"  {mark} {name}" for mark, name in zip(marks, names, strict=True)]
        lines.append(f"{count} of {len(names)} patches applied")
        document |= {"series": names, "applied": [a.patch for a in seen.applied]}
    else:
        lines.append(f"queue {seen.queue.name} has no series that fits")
    edited = drifted(seen)
    document["drifted"] = edited
    lines += [f"drift: {path}" for path in edited]
    code = ExitCode.DONE
    if survey.interrupted:
        lines += interrupted(seen)
        code = ExitCode.FINDING
    if survey.orphaned:
        lines.append(f"orphaned: {survey.orphaned}; mend: patchq push -a")
        code = ExitCode.FINDING
    return Report(tuple(lines), (), document, ExitCode.FINDING if edited else code)


def drifted(seen: look.Sight) -> list[str]:
    """Return touched files that are neither as recorded nor pristine where nothing is."""
    says = standing.recorded(seen.survey.stack)
    lock = seen.locks.get(seen.choice.release) if seen.choice else None
    if lock is not None:
        says = {**lock.base, **says}
    return sorted(
        path
        for path, state in says.items()
        if path in seen.survey.files and standing.live(seen.survey, path) != state
    )
