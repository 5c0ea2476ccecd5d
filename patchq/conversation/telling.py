"""A plain tree's push and pop in the words of quilt and of GNU patch, which scripts read."""

from __future__ import annotations

from collections.abc import Sequence

from patchq.conversation import judging
from patchq.engine import landing, locating, rejects
from patchq.engine.locating import Failed, Fate
from patchq.errors import ExitCode
from patchq.model import ABSENT, AppliedPatch, Patch
from patchq.plan import Conflict, Kind
from patchq.report import Report

# What GNU patch takes unless it is told otherwise.
_QUILTS_FUZZ = 2


def empty(name: str, there: bool) -> str:
    """Return what is said of a patch without a diff; `there`: it has a file."""
    if there:
        return f"Patch {name} appears to be empty; applied"
    return f"Patch {name} does not exist; applied empty patch"


def unfit(name: str) -> str:
    """Return what is said of a patch that does not fit."""
    return f"Patch {name} does not apply (enforce with -f)"


def reversible(name: str) -> str:
    """Return what is said of a patch whose changes are there already."""
    return f"Patch {name} can be reverse-applied"


def landed(done: landing.Landing) -> list[str]:
    """Return what is said of the files of a patch that fits."""
    return [line for one in done.files for line in (f"patching file {one.path}", *one.moved)]


def parts(done: landing.Landing, found: rejects.Parts, *, kept: bool, quiet: bool) -> list[str]:
    """Return what is said of the files of a patch that does not fit.

    `kept`: the rejects stay as files; `quiet`: only what did not fit is told.
    """
    out: list[str] = []
    why = {one.path: (*one.astray, *([one.problem] if one.problem else ())) for one in done.files}
    for one in found.files:
        failed = sum(isinstance(fate, Failed) for fate in one.fates)
        count = f"{failed} out of {len(one.fates)} hunk{'s' * (len(one.fates) != 1)}"
        if one.problem:
            out += [f"{one.problem}: {one.path}", f"{count} ignored"]
            continue
        if not quiet:
            out += [f"patching file {one.path}", *_hunks(one.fates)]
        if failed and kept:
            out.append(f"{count} FAILED -- saving rejects to file {one.path}.rej")
        elif failed:
            out.append(f"{count} FAILED" + f" -- rejects in file {one.path}" * (not quiet))
        else:
            out += why.get(one.path, ())
    return out


def _hunks(fates: Sequence[Fate]) -> list[str]:
    """Return what is said of hunks; of one that fits in several places, where."""
    out = []
    for number, fate in enumerate(fates, 1):
        line = locating.words(number, fate)
        if line:
            out.append(line)
        if isinstance(fate, Failed) and fate.places:
            out.append(f"Hunk #{number}: {fate.why}; none is guessed")
    return out


def hints(patch: Patch, done: landing.Landing, tree: judging.Tree, fuzz: int) -> tuple[str, ...]:
    """Return what may help a patch that does not fit: fuzz, which quilt takes unasked."""
    if not any(isinstance(fate, Failed) for one in done.files for fate in one.fates):
        return ()
    least = landing.fuzz_needed(patch.diffs, tree.get, reverse=patch.reverse)
    if least is None or not fuzz < least <= _QUILTS_FUZZ:
        return ()
    return (f"Hint: `patchq push --fuzz {least}' would apply it; look at where it goes.",)


def popped(gone: Sequence[AppliedPatch], top: str | None) -> list[str]:
    """Return what is said of patches that come off, the top one first."""
    out: list[str] = []
    for one in gone:
        if not one.changes:
            out.append(f"Patch {one.patch} appears to be empty, removing")
        else:
            out.append(f"Removing patch {one.patch}")
        out += [
            f"{'Removing' if change.before == ABSENT else 'Restoring'} {change.path}"
            for change in sorted(one.changes, key=lambda change: change.path)
        ]
        out.append("")
    return [*out, f"Now at patch {top}" if top else "No patches applied"]


def unclean(verb: str, conflicts: Sequence[Conflict], done: Report | None = None) -> Report:
    """Return the outcome of patches that do not come off, since files of theirs were edited.

    `done` is the report of those above, which came off.
    """
    name = conflicts[0].patch
    notes = [
        f"Patch {name} does not remove cleanly (refresh it or enforce with -f)",
        "Hint: `patchq diff -z' will show the pending changes.",
    ]
    notes += [one.message for one in conflicts if one.kind is not Kind.DRIFT]
    document = {
        **(dict(done.document) if done else {"verb": verb, "patches": []}),
        "stuck": name,
        "conflicts": [one.to_json() for one in conflicts],
    }
    lines = done.lines[:-1] if done else ()
    return Report(lines, tuple(notes), document, ExitCode.FAILED)
