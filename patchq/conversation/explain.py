"""Outcomes in words: what moved, and why something may not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from patchq import standing
from patchq.conversation import aftermath, drift, telling, view
from patchq.engine import diff, overlap
from patchq.errors import ExitCode
from patchq.model import FileState, Patch, Series
from patchq.plan import Conflict, Kind, Plan
from patchq.queue import store
from patchq.report import Report

MENDS = {
    Kind.DRIFT: "patchq diff -z | patch -R -p1 -d {site}   # takes the edit back",
    Kind.ANOTHER_QUEUE: "patchq pop -a --queue {other}   # what lies in the way comes off first",
    Kind.WRONG_RELEASE: "patchq queues   # lists the releases that have a series",
    Kind.PARTIAL: "{reinstall}",
    Kind.ALREADY_THERE: "patchq push --adopt   # takes them over; the originals are the release's",
    Kind.ORDER: "patchq pop -a, then: patchq push -a",
    Kind.CHANGED_PATCH: "patchq pop -a, then: patchq push -a",
    Kind.MERGED_UPSTREAM: "patchq check   # this environment does not need the patch",
    Kind.JUDGEMENT: "correct {patch}, then: patchq lint --write --queue {queue}",
    Kind.REFUSED: "mend what the reason names, then push again",
}


def report(
    verb: str,
    seen: view.Sight,
    conflicts: tuple[Conflict, ...],
    *,
    series: Series | None = None,
    base: Mapping[str, bytes] | None = None,
) -> Report:
    """Return the outcome "nothing was changed", with every reason.

    `series` lets drift be looked into: whether a patch's intent holds already,
    and, with the pristine `base` of the files, what was edited.
    """
    if series is not None:
        conflicts = tuple(_looked_into(seen, one, series, base or {}) for one in conflicts)
    notes = []
    for conflict in conflicts:
        notes += _lines(seen, conflict)
    have = seen.survey.installed
    version = f"{have.name} {have.version}" if have else ""
    notes.append(f"Nothing was changed: {verb} found {_count(len(conflicts))} in {version}.")
    document = {
        "verb": verb,
        "queue": seen.queue.name,
        "site": seen.survey.site,
        "patches": [],
        "conflicts": [conflict.to_json() for conflict in conflicts],
    }
    refused = all(conflict.kind is Kind.REFUSED for conflict in conflicts)
    code = ExitCode.FAILED if refused else ExitCode.CONFLICT
    return Report((), tuple(notes), document, code)


def needless(seen: view.Sight, proof: str) -> Conflict:
    """Return the conflict of a release without a series, which has upstream what it is for."""
    have = seen.survey.installed
    assert have is not None
    message = f"{have.name} {have.version} has of its own what queue {seen.queue.name} is for"
    return Conflict(Kind.MERGED_UPSTREAM, "", None, message, detail=proof)


def _count(number: int) -> str:
    return "1 conflict" if number == 1 else f"{number} conflicts"


def _lines(seen: view.Sight, conflict: Conflict) -> list[str]:
    have = seen.survey.installed
    name, version = (have.name, have.version) if have else (seen.queue.distribution, "")
    where = f"--target {seen.survey.site} --upgrade" if seen.target else "--force-reinstall"
    pip = "pip" if seen.target else f"{seen.survey.executable} -m pip"
    reinstall = f"{pip} install {where} --no-deps {name}=={version}"
    lines = [f"patchq: {conflict.kind.value}: {conflict.message}"]
    why = []
    if conflict.expected is not None and conflict.found is not None:
        why.append(f"expected {word(conflict.expected)}, found {word(conflict.found)}")
    if conflict.detail:
        why.append(conflict.detail)
    if why:
        lines.append("  why: " + "\n       ".join("; ".join(why).splitlines()))
    mend = MENDS[conflict.kind]
    if conflict.kind is Kind.DRIFT and seen.remote:
        mend = "patchq diff -z   # shows the edit; to put the file back there: {reinstall}"
    elif conflict.kind is Kind.DRIFT and _keeps(seen, conflict):
        mend = f"patchq refresh {conflict.patch}   # keeps the edit there; {mend}"
    mend = mend.format(
        site=seen.survey.site,
        reinstall=reinstall,
        patch=conflict.patch,
        queue=seen.queue.folder,
        other=conflict.other,
    )
    lines.append(f"  mend: {seen.meant(mend)}")
    return lines


def _keeps(seen: view.Sight, conflict: Conflict) -> bool:
    """Return whether an edit can be kept in the applied patch that it was made in."""
    mine = any(one.patch == conflict.patch for one in seen.applied)
    return mine and not store.is_shipped(seen.queue)


def word(state: FileState) -> str:
    """Return a file state in a few characters."""
    if state.sha256 is None:
        return "no file"
    return f"sha256 {state.sha256[:12]}" + (" (executable)" if state.executable else "")


def _looked_into(
    seen: view.Sight, conflict: Conflict, series: Series, base: Mapping[str, bytes]
) -> Conflict:
    if conflict.detail or conflict.kind not in (Kind.DRIFT, Kind.WRONG_RELEASE, Kind.PARTIAL):
        return conflict
    patch = next(p for p in series.patches if p.name == conflict.patch)
    path, found = conflict.path, conflict.found
    held = _upstream(seen, patch, series.release)
    if held and path and found and drift.own(seen, path, found.sha256):
        message = f"{path} does what {patch.name} is for already, in words of its own"
        return replace(conflict, kind=Kind.MERGED_UPSTREAM, message=message)
    conflict = replace(conflict, detail=f"what {patch.sketch_name} says of it holds" * held)
    if path is None or found is None or found.sha256 is None or path not in base:
        return conflict
    now = seen.survey.contents.get(found.sha256)
    if now is None:
        return conflict
    shown = diff.unified(base[path], now, path).decode("utf-8", "replace")
    mine = [one for one in patch.diffs if path in (one.old, one.new)]
    touch = any(overlap.overlaps(base[path], now, one) for one in mine)
    note = "its lines overlap the patch's" if touch else "its lines do not overlap the patch's"
    note = f"{conflict.detail}; {note}" if held else note
    return replace(conflict, detail=f"{note}\n{shown}".rstrip())


def _upstream(seen: view.Sight, patch: Patch, release: str) -> bool:
    """True where the patch's sketch holds on the files as they are, with a claim."""
    if patch.sketch is None:
        return False
    from patchq.engine import sketch

    def read(path: str) -> bytes | None:
        digest = standing.live(seen.survey, path).sha256
        return None if digest is None else seen.survey.contents.get(digest)

    have = seen.survey.installed
    version = standing.public(have.version) if have else release
    claims = sketch.judge(sketch.load(patch.sketch, name=patch.sketch_name), version, read)
    return bool(claims) and all(claim.held for claim in claims)


def moved(verb: str, seen: view.Sight, intent: Plan, ok: Mapping[str, object] | None) -> Report:
    """Return the outcome of a push or pop; `ok` is the agent's answer, None for a dry run."""
    up = intent.verb == "push"
    say = {
        (True, False): "Applying patch",
        (False, False): "Removing patch",
        (True, True): "Would apply patch",
        (False, True): "Would remove patch",
    }[up, ok is None]
    does = ("patching file" if up else "Restoring") if ok is not None else "would change"
    goes = "Removing" if ok is not None else "would remove"
    touched = {
        applied.patch: [change.path for change in applied.changes]
        for applied in (*seen.survey.stack, *intent.stack)
        if applied.queue == intent.queue
    }
    lines: list[str] = []
    gone = {e.path for e in intent.entries if e.after.sha256 is None} if not up else set()
    for name in intent.patches:
        empty = not up and not touched[name]
        lines.append(f"Patch {name} appears to be empty, removing" if empty else f"{say} {name}")
        for path in touched[name]:
            lines.append(f"{goes if path in gone else does} {path}")
        lines.append("")
    top = next((a.patch for a in reversed(intent.stack) if a.queue == intent.queue), None)
    would = "Would be" if ok is None else "Now"
    none = "Would leave no patches applied" if ok is None else "No patches applied"
    lines.append(f"{would} at patch {top}" if top else none)
    pending = ok.get("pending") if ok else None
    notes = [str(pending)] if pending else []
    if seen.survey.orphaned:
        notes.insert(0, f"The patches recorded before are gone: {seen.survey.orphaned}.")
    after = aftermath.of(verb, seen, [entry.path for entry in intent.entries if up], ok)
    document = {**_moved(verb, seen, intent, ok, top), **after.document}
    if seen.tree and not up and ok is not None:
        off = [a for a in reversed(seen.survey.stack) if a not in intent.stack]
        return Report(tuple(telling.popped(off, top)), tuple(notes), document)
    return Report(tuple(lines), (*notes, *after.notes), document)


def _moved(
    verb: str, seen: view.Sight, intent: Plan, ok: Mapping[str, object] | None, top: str | None
) -> dict[str, object]:
    return {
        "verb": verb,
        "direction": intent.verb,
        "dry_run": ok is None,
        "queue": intent.queue,
        "release": intent.release,
        "chosen": seen.choice.how if seen.choice else None,
        "also": list(seen.choice.also) if seen.choice else [],
        "site": seen.survey.site,
        "version": seen.survey.installed.version if seen.survey.installed else None,
        "patches": list(intent.patches),
        "paths": [entry.path for entry in intent.entries],
        "removed": [entry.path for entry in intent.entries if entry.after.sha256 is None],
        "top": top,
        "receipt": ok.get("receipt") if ok else None,
        "kept": ok.get("kept") if ok else None,
    }
