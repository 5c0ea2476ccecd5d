"""Looking without touching, quilt's way: bare names, one a line; and the status.

Nothing here reads a patch's text.
"""

from __future__ import annotations

from dataclasses import replace

from patchq import running, standing
from patchq.conversation import look, restart, view
from patchq.conversation.goal import Upto
from patchq.errors import ExitCode
from patchq.model import AppliedPatch, LockedPatch
from patchq.queue import undoing
from patchq.report import Report
from patchq.transport.channel import Conversation


def _bare(verb: str, seen: view.Sight, names: list[str], **more: object) -> Report:
    release = seen.choice.release if seen.choice else None
    document = {
        "verb": verb,
        "queue": seen.queue.name,
        "release": release,
        "patches": names,
        **more,
    }
    return Report(tuple(names), asides(seen), document)


def interrupted(seen: view.Sight) -> tuple[str, ...]:
    """Return the notes that every verb adds where a transaction, or an edit, was cut short."""
    notes: list[str] = []
    if seen.survey.interrupted:
        notes.append("interrupted: a transaction was cut short; mend: patchq recover")
    if undoing.is_cut_short(seen.queue.folder):
        notes.append(
            f"the queue in {seen.queue.folder} is being edited, or an edit of it was cut short;"
            " mend: the same command again: each that writes takes it back first"
        )
    return tuple(notes)


def asides(seen: view.Sight) -> tuple[str, ...]:
    """Return the notes of a verb that names patches: the files may not be as it says."""
    edited = drifted(seen) if seen.applied and not seen.tree else []
    mend = seen.meant("patchq diff -z   # shows it")
    return (*interrupted(seen), *(f"drift: {path} was edited; mend: {mend}" for path in edited))


def nothing(verb: str, seen: view.Sight, message: str, code: ExitCode) -> Report:
    """Return the outcome of a question that has no answer here."""
    document = {"verb": verb, "queue": seen.queue.name, "patches": [], "message": message}
    said = (message,) if message else ()
    return Report((), (*said, *asides(seen)), document, code)


def series(aim: view.Aim, marked: bool) -> Conversation[Report]:
    """Name the patches of the series that fits; `marked` shows ``+`` applied, ``=`` top."""
    seen = yield from look.sight(aim)
    names = list(seen.names)
    report = _bare("series", seen, names, applied=[a.patch for a in seen.applied])
    return replace(report, lines=tuple(_marks(seen)[0])) if marked else report


def applied(aim: view.Aim, upto: str | None) -> Conversation[Report]:
    """Name the applied patches, bottom to top, up to one of them."""
    seen = yield from look.sight(aim, need=view.Need.RECORD)
    names = [one.patch for one in seen.applied]
    if upto is not None:
        names = names[: Upto(upto).index(names, "applied", _listed(seen)) + 1]
    if not names:
        return nothing("applied", seen, "No patches applied", ExitCode.FAILED)
    return _bare("applied", seen, names)


def unapplied(aim: view.Aim, after: str | None) -> Conversation[Report]:
    """Name the patches that are not applied, or those after a given one."""
    seen = yield from look.sight(aim)
    names = _above(seen, after)
    if not names and not (seen.tree and after is not None):
        return nothing("unapplied", seen, _full(seen), ExitCode.FAILED)
    return _bare("unapplied", seen, names)


def _listed(seen: view.Sight) -> tuple[str, ...]:
    return seen.names if seen.choice is not None else ()


def _above(seen: view.Sight, after: str | None) -> list[str]:
    names = list(seen.names)
    if after is not None:
        return names[Upto(after).index(names, "in series") + 1 :]
    held = {applied.patch for applied in seen.applied}
    return [name for name in names if name not in held]


def _full(seen: view.Sight) -> str:
    if not seen.names:
        return "No patches in series"
    return f"File series fully applied, ends at patch {seen.names[-1]}"


def top(aim: view.Aim) -> Conversation[Report]:
    """Name the top patch."""
    seen = yield from look.sight(aim, need=view.Need.RECORD)
    if not seen.applied:
        return nothing("top", seen, "No patches applied", ExitCode.NOTHING_TO_DO)
    return _bare("top", seen, [seen.applied[-1].patch])


def next_(aim: view.Aim, after: str | None) -> Conversation[Report]:
    """Name the next patch to apply, or the one after a given one."""
    seen = yield from look.sight(aim)
    names = _above(seen, after)
    if not names:
        return nothing("next", seen, _full(seen), ExitCode.NOTHING_TO_DO)
    return _bare("next", seen, names[:1])


def previous(aim: view.Aim, before: str | None) -> Conversation[Report]:
    """Name the patch below the top, or below a given one."""
    seen = yield from look.sight(aim, need=view.Need.RECORD)
    names = [applied.patch for applied in seen.applied]
    if before is not None:
        names = list(seen.names)
        names = names[: Upto(before).index(names, "in series") + 1]
    if not names:
        return nothing("previous", seen, "No patches applied", ExitCode.FAILED)
    if len(names) < 2:
        word = "" if seen.tree else "There is no patch below"  # quilt says nothing
        return nothing("previous", seen, word, ExitCode.NOTHING_TO_DO)
    return _bare("previous", seen, names[-2:-1])


def status(aim: view.Aim, verbose: bool = False) -> Conversation[Report]:
    """Say what is installed where, which series fits, and how far it is applied.

    `verbose` adds how each original is kept.
    """
    want = view.Want(more=("running",), series="made")
    seen = yield from look.sight(aim, want, need=view.Need.RECORD)
    have, survey, choice = seen.survey.installed, seen.survey, seen.choice
    assert have is not None
    lines = [f"{have.name} {have.version} in {survey.site} (Python {survey.python})"]
    findings = list(interrupted(seen))
    if choice:
        known = "" if choice.release in seen.queue.releases else ", which is not in sight"
        lines.append(
            f"queue {seen.queue.name}, series {choice.release} (chosen by {choice.how}){known}"
        )
        marked, said = _marks(seen)
        lines += [f"  {line}" for line in marked]
        lines.append(f"{len(seen.applied)} of {len(seen.names)} patches applied")
        findings += said
    else:
        lines.append(f"queue {seen.queue.name} has no series that fits")
    others = [a for a in survey.stack if a.queue != seen.queue.name]
    lines += [f"also applied: {one.patch} of queue {one.queue}" for one in others]
    if verbose and not survey.orphaned:
        kept = sorted(survey.kept.items())
        lines += [f"original kept: {word or 'none, it is new'}: {path}" for path, word in kept]
    edited = drifted(seen)
    findings += [_drift(seen, path) for path in edited]
    loose = yield from _loose(aim, seen, edited)
    findings += [f"edited, and in no patch: {path}" for path in loose]
    if survey.orphaned:
        mend = "push -a" if choice and choice.release in seen.queue.releases else "recover"
        findings.append(f"orphaned: {survey.orphaned}; mend: patchq {mend}")
    live = None if survey.orphaned else running.read(seen.extra.get("running"))
    findings += restart.alarms(live) if live else ()
    document = _status(seen, edited, findings)
    document["edited"] = list(loose)
    document["ephemeral"] = bool(seen.extra.get("ephemeral"))
    document["running"] = live.to_json() if live else None
    code = ExitCode.FINDING if findings else ExitCode.DONE
    last = (*restart.current(live), *restart.needed(live, alarmed=True))
    return Report((*lines, *findings, *last), (), document, code)


def _drift(seen: view.Sight, path: str) -> str:
    """Return the finding of a file that drifted, and to which patch the edit belongs."""
    owner = next(
        (one for one in reversed(seen.applied) if any(c.path == path for c in one.changes)), None
    )
    if owner is None:
        return f"drift: {path}"
    name = "" if owner is seen.applied[-1] else f" {owner.patch}"
    mend = seen.meant(f"patchq refresh{name}")
    return f"drift: {path} (not in {owner.patch} yet: {mend} puts it in)"


def _loose(aim: view.Aim, seen: view.Sight, known: list[str]) -> Conversation[list[str]]:
    """Return the files that were edited and that no patch has, but those known already."""
    if seen.survey.installed is None or seen.survey.orphaned or seen.survey.refusal:
        return []
    from patchq.conversation import commit, desk  # for a verb that only names patches too much

    found = yield from desk.edits(desk.Desk(aim, commit.Ground("", ""), seen))
    return [path for path in found if path not in known]


def _status(seen: view.Sight, edited: list[str], findings: list[str]) -> dict[str, object]:
    have, survey, choice = seen.survey.installed, seen.survey, seen.choice
    assert have is not None
    return {
        "verb": "status",
        "distribution": have.name,
        "version": have.version,
        "site": survey.site,
        "python": survey.python,
        "queue": seen.queue.name,
        "release": choice.release if choice else None,
        "chosen": choice.how if choice else None,
        "also": list(choice.also) if choice else [],
        "series": list(seen.names) if choice else [],
        "applied": [applied.patch for applied in seen.applied],
        "stack": [applied.to_json() for applied in survey.stack],
        "kept": dict(survey.kept),
        "drifted": edited,
        "interrupted": survey.interrupted,
        "orphaned": survey.orphaned,
        "refusal": survey.refusal,
        "findings": findings,
    }


def _marks(seen: view.Sight) -> tuple[list[str], list[str]]:
    """Return the series with ``+`` applied and ``=`` top, and where stack and series differ."""
    lock = seen.locks.get(seen.release)
    pinned = {patch.name: patch for patch in lock.patches} if lock else {}
    held = {applied.patch: applied for applied in seen.applied}
    top = seen.applied[-1].patch if seen.applied else None
    lines = [
        f"{'=' if name == top else '+' if name in held else ' '} {name}" for name in seen.names
    ]
    findings = [
        f"changed: {name} was edited in the queue after it was pushed"
        for name in seen.names
        if name in held and name in pinned and _differs(pinned[name], held[name])
    ]
    findings += [f"forced on in part: {one.patch}" for one in seen.applied if one.forced]
    findings += [f"not in the series any more: {name}" for name in held if name not in seen.names]
    common = [name for name in seen.names if name in held]
    if common != [name for name in held if name in seen.names] or common != list(
        seen.names[: len(common)]
    ):
        findings.append(f"order: applied are {', '.join(held)}; the series has another order")
    return lines, findings


def _differs(pinned: LockedPatch, applied: AppliedPatch) -> bool:
    """Return whether a patch does something else now; what only its header says is no matter."""
    return pinned.patch != applied.sha256 and pinned.changes != applied.changes


def drifted(seen: view.Sight) -> list[str]:
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
