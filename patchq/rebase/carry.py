"""Carry one patch to another release: merge it, judge it, or say why it cannot be.

Pure but for the trees it reads. Nothing is applied that was not judged (docs/rebase.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from patchq.engine import diff, sketch, unasked, upstream
from patchq.engine.apply import File
from patchq.engine.sketch import Sketch
from patchq.engine.upstream import Upstream
from patchq.engine.verdict import Verdict
from patchq.errors import PatchqError
from patchq.model import Patch
from patchq.queue import series
from patchq.rebase import files, rendered
from patchq.rebase.files import FileMerge
from patchq.rebase.memory import Memory
from patchq.rebase.step import Step, Word
from patchq.rebase.tree import Tree

# The strongest first: a patch is what its least certain file is.
_ORDER = (Word.REMEMBERED, Word.STRUCTURAL, Word.MERGED, Word.MOVED)
# Of these the patch file is kept, but for line numbers.
_KEPT = (Word.EXACT, Word.MOVED)
# R15 by other releases than the new one: (the sketch, its text) -> since when.
Since = Callable[[Sketch, bytes], Upstream | None]


@dataclass(frozen=True, slots=True)
class Ground:
    """Where patches are carried from and to: `old` has those below, `new` those carried.

    Without `memory` no resolution is taken from it.
    """

    old: Tree
    new: Tree
    memory: Memory | None
    since: Since
    needs: Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class Carried:
    """A patch on the new release: `step` says how it came there.

    `text` is the new patch file, None where it is left out or stuck; `after` each path that
    it gives. `merged` are the files as far as they were merged, for the work tree.
    """

    step: Step
    text: bytes | None = None
    options: str = ""
    after: Mapping[str, File | None] = field(default_factory=dict)
    merged: tuple[FileMerge, ...] = ()
    verdict: Verdict | None = None


def carry(patch: Patch, ground: Ground) -> Carried:
    """Return a patch on the new release, judged; neither tree is changed.

    Raises:
        PatchqError: its sketch cannot be read, or it does not fit its own release.
    """
    new = ground.new
    if not ground.needs(patch.stem):
        said = f"queue.toml says which releases need it, and {new.release} is none of them"
        return Carried(Step(patch.name, Word.UNNEEDED, said))
    parsed = intent(patch)
    left = tuple(map(str, unasked.unasked(parsed, new.release))) if parsed else ()
    there = _upstream(patch, parsed, ground)
    if there is not None:
        return Carried(replace(there, unasked=left))
    theirs = ground.old.put_aside(patch)
    merged = tuple(files.merged(patch, theirs, ground.old, new, ground.memory))
    found = tuple(said for one in merged for said in one.found)
    if all(one.upstream for one in merged):
        said = "the merge brings nothing: all that it does is there"
        since = new.release
        return Carried(
            Step(patch.name, Word.UPSTREAM, said, found, _flags(merged), unasked=left, since=since)
        )
    stuck = [one for one in merged if one.word.stuck]
    step = Step(patch.name, _word(merged), _detail(merged), found, _flags(merged), unasked=left)
    if stuck:
        reasons = tuple(reason for one in stuck for reason in one.reasons)
        word = Word.GONE if all(one.word is Word.GONE for one in stuck) else Word.CONFLICT
        step = replace(step, word=word, reasons=reasons)
        return Carried(step, merged=merged)
    done = given(patch, step, merged, parsed, ground)
    if step.word is Word.REMEMBERED and done.step.word.stuck:
        # What was right elsewhere is wrong here: as if it were not known, with markers.
        return carry(patch, replace(ground, memory=None))
    return done


def intent(patch: Patch) -> Sketch | None:
    """Return a patch's sketch, None where it has none.

    Raises:
        PatchqError: it cannot be read.
    """
    return None if patch.sketch is None else sketch.load(patch.sketch, name=patch.sketch_name)


def given(
    patch: Patch,
    step: Step,
    merged: Sequence[FileMerge],
    parsed: Sketch | None,
    ground: Ground,
    *,
    force: bool = False,
) -> Carried:
    """Return the patch file that gives the merged files, if they pass the judgement.

    `force`: findings become flags.
    """
    new = ground.new
    after = {one.path: one.file for one in merged if not one.upstream}
    origin = {one.path: one.origin for one in merged if one.origin}
    after = {**dict.fromkeys(origin.values()), **after}
    before = {path: new.file(path) for path in after}
    text, options = patch.text, series.options(patch.strip, patch.reverse)
    if step.word is Word.MOVED:
        text = rendered.shifted(patch, {one.path: one.offsets for one in merged})
    elif step.word is not Word.EXACT:
        text, options = rendered.patch(patch.header, before, after, origin), ""
    fresh = reread(patch, text, options)
    verdict = new.judge(after, parsed, fresh.diffs)
    if step.word in _KEPT and any(one.kind == "enclosing" for one in verdict.findings):
        # Only the line that a heading quotes is another now: the merge has found its place.
        text, options = rendered.patch(patch.header, before, after, origin), ""
        fresh = reread(patch, text, options)
        verdict = new.judge(after, parsed, fresh.diffs)
    step = replace(step, changed=rendered.changed(patch, fresh))
    reasons = tuple(_reasons(verdict))
    if reasons and force:
        step = replace(step, flags=(*step.flags, *(f"taken in spite of: {r}" for r in reasons)))
    elif reasons:
        how = () if step.word is Word.RESOLVED else (f"as {step.word.value}, it is wrong:",)
        step = replace(step, word=Word.CONFLICT, reasons=(*how, *reasons))
        return Carried(step, merged=tuple(merged), verdict=verdict)
    _prove(fresh, after, new)
    return Carried(step, text, options, after, tuple(merged), verdict)


def reread(patch: Patch, text: bytes, options: str) -> Patch:
    """Return the patch as its new file says it."""
    if text == patch.text:
        return patch
    strip, reverse = (patch.strip, patch.reverse) if options else (1, False)
    header, diffs = diff.parse(text, name=patch.name, strip=strip)
    return replace(patch, text=text, header=header, diffs=diffs, strip=strip, reverse=reverse)


def _prove(patch: Patch, after: Mapping[str, File | None], new: Tree) -> None:
    """Check that the patch file gives the very files that were judged."""
    done = new.put_aside(patch)
    wrong = [path for path, file in after.items() if done.get(path, new.file(path)) != file]
    if wrong:
        raise PatchqError(
            f"{patch.name}, written anew, does not give what was judged",
            why=f"{', '.join(wrong)} would differ",
            mend="report a bug; nothing was written",
        )


def _upstream(patch: Patch, parsed: Sketch | None, ground: Ground) -> Step | None:
    """Return the step of a patch that the release needs no more, as its sketch proves."""
    if parsed is None or patch.sketch is None:
        return None
    new = ground.new
    known = ground.since(parsed, patch.sketch)
    since = known.since if known else new.release
    if not upstream.holds(parsed, new.release, new.read):
        return Step(patch.name, Word.UPSTREAM, str(known), since=since) if known else None
    claims = [c for c in sketch.judge(parsed, new.release, new.read) if not c.given]
    said = f"its sketch holds on {new.release} without it ({len(claims)} of {len(claims)} claims)"
    lines = tuple(
        f"{claim.path}: `{claim.code}`" + (f" in {claim.where}" if claim.where else "")
        for claim in claims
    )
    return Step(patch.name, Word.UPSTREAM, said, lines, since=since)


def _reasons(verdict: Verdict) -> Iterable[str]:
    for claim in verdict.above:
        if not claim.held:
            where = f" in {claim.where}" if claim.where else ""
            near = f"; nearest: {claim.nearest}" if claim.nearest else ""
            yield f"{claim.path}: the sketch's `{claim.code}`{where} is false{near}"
    yield from map(str, verdict.findings)


def _word(merged: Iterable[FileMerge]) -> Word:
    words = {one.word for one in merged if not one.upstream}
    some_upstream = any(one.upstream for one in merged)
    found = next((word for word in _ORDER if word in words), Word.EXACT)
    return Word.MERGED if found is Word.EXACT and some_upstream else found


def _detail(merged: Iterable[FileMerge]) -> str:
    return "; ".join(one.detail for one in merged if one.detail)


def _flags(merged: Iterable[FileMerge]) -> tuple[str, ...]:
    return tuple(flag for one in merged for flag in one.flags)
