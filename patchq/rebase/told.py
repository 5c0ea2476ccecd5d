"""What a rebase says, for a person and for a program."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from patchq.errors import ExitCode
from patchq.rebase import page
from patchq.rebase.progress import Folder, Progress
from patchq.rebase.road import Done
from patchq.rebase.step import Step, Word
from patchq.report import Report

# Lines of a diff of diffs that are shown; all of them are in the new patch.
_MOST = 60


def lines(step: Step) -> Iterator[str]:
    """Yield what is said of one patch."""
    detail = f" ({step.detail})" if step.detail else ""
    yield f"{step.name}: {step.word.value}{detail}"
    for proof in step.proofs:
        yield f"    proof: {proof}"
    for reason in step.reasons:
        yield f"    {reason}"
    for flag in step.flags:
        yield f"    review: {flag}"
    for one in step.unasked:
        yield f"    not asked: {one}"
    shown = step.changed.splitlines()
    for line in shown[:_MOST]:
        yield f"    | {line}"
    if len(shown) > _MOST:
        yield f"    | ... {len(shown) - _MOST} more lines"


def report(done: Done, folder: Folder, *, dry: bool = False) -> Report:
    """Return the report of a rebase that ended, waits, or was only asked for (`dry`)."""
    asked = done.progress
    steps = asked.steps if done.waiting is None else (*asked.steps, done.waiting)
    out = [_summary(asked, steps, done, dry=dry)]
    notes = [f"filled in: {line}" for line in done.marked]
    code = ExitCode.DONE
    if done.waiting is not None:
        notes += [f"read {folder.path / 'CONFLICT.txt'}", f"edit the files in {folder.work}"]
        notes += [line.strip() for line in page.commands()]
    if done.waiting is not None or any(step.word.stuck for step in steps):
        code = ExitCode.CONFLICT
    review = [step.name for step in steps if step.flags]
    if review:
        notes.append(f"to be reviewed: {', '.join(review)}")
    document = {
        "verb": "rebase",
        "queue": asked.queue,
        "from": asked.source,
        "onto": asked.onto,
        "dry_run": dry,
        "steps": [step.to_json() for step in steps],
        "waiting": done.waiting.name if done.waiting else None,
        "work_tree": str(folder.work) if done.waiting else None,
        "series": str(done.place) if done.place else None,
    }
    return Report(tuple(out), tuple(notes), document, code)


def _summary(asked: Progress, steps: Sequence[Step], done: Done, *, dry: bool) -> str:
    if done.waiting is not None:
        return f"The rebase onto {asked.onto} waits at {done.waiting.name}; the queue is as it was"
    if all(step.word in (Word.UPSTREAM, Word.UNNEEDED) for step in steps):
        return f"{asked.onto} needs none of them: no series is made"
    if dry:
        stuck = sum(step.word.stuck for step in steps)
        rest = f", {stuck} would wait for you" if stuck else ""
        return f"{sum(step.word.carried for step in steps)} of {len(steps)} would be carried{rest}"
    count = sum(step.word.carried for step in steps)
    return f"{done.place}: {count} of {len(steps)} patches" if done.place else "No patch is left"
