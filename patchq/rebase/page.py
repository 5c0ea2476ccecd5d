"""The page of a conflict: why it is one, what each side did, and what to type."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from patchq.engine import lines, merge, textdiff
from patchq.model import Patch
from patchq.rebase.files import FileMerge
from patchq.rebase.step import Step
from patchq.rebase.tree import Tree

# Lines of upstream's change that are shown around what the patch touches.
_NEAR = 12


def page(
    patch: Patch, step: Step, merged: Sequence[FileMerge], old: Tree, new: Tree, work: Path
) -> str:
    """Return the page as text."""
    theirs = old.put_aside(patch)
    out = [
        f"{patch.name} does not come to {new.store.distribution} {new.release} by itself.",
        "",
        "Why:",
        *(f"  {reason}" for reason in step.reasons),
        "",
        *_sketch(patch),
        f"The files are in {work}",
        "Edit them there to what the patch should give; a file that should go: remove it. Then:",
        *commands(),
        "",
    ]
    for one in merged:
        source = one.source or one.path
        base, ours = old.read(source), new.read(one.origin or one.path)
        there = theirs.get(one.path if one.path in theirs else source)
        out += [f"=== {one.path}: {one.word.value}", ""]
        out += [f"What {patch.name} does ({old.release}):", ""]
        out += _diff(base, there and there[0], source)
        out += [f"What upstream did there ({old.release} to {new.release}):", ""]
        out += _near(base, ours, there and there[0], source)
    return "\n".join([*out, ""])


def _sketch(patch: Patch) -> Iterator[str]:
    """Yield what the patch is for, and that this may be what is wrong."""
    if patch.sketch is None:
        return
    yield f"What it is for, as the queue's {patch.sketch_name} says it:"
    yield from (f"    {line}".rstrip() for line in lines.decode(patch.sketch).splitlines())
    yield "Where the release says the same in other words, edit the sketch (`# when <RELEASE`)."
    yield ""


def commands() -> tuple[str, ...]:
    """What can be typed where a rebase waits."""
    return (
        "  patchq rebase --continue   # judge what is there now, and go on",
        "  patchq rebase --skip       # leave this patch out of the new series",
        "  patchq rebase --abort      # forget the rebase and the work tree",
        "  patchq rebase --quit       # forget the rebase, keep the work tree",
    )


def _diff(before: bytes | None, after: bytes | None, path: str) -> Iterator[str]:
    for line in lines.split(textdiff.unified(before, after, path)):
        yield f"    {lines.decode(line).rstrip()}".rstrip()
    yield ""


def _near(
    base: bytes | None, ours: bytes | None, theirs: bytes | None, path: str
) -> Iterator[str]:
    """Yield upstream's hunks, those that lie near the patch's lines; all if none does."""
    if base is None or ours is None or theirs is None:
        yield from _diff(base, ours, path)
        return
    spans, at = [], 0
    for region in merge.merge(base, base, theirs).regions:
        if region.side != "base":
            spans.append(range(at - _NEAR, at + len(region.base) + _NEAR))
        at += len(region.base)
    at = 0
    for region in merge.merge(base, ours, base).regions:
        stop = at + len(region.base)
        if region.side != "base" and any(at < s.stop and s.start <= stop for s in spans):
            yield f"    line {at + 1}:"
            for mark, part in (("-", region.base), ("+", region.ours)):
                yield from (f"    {mark}{lines.decode(line).rstrip()}" for line in part)
        at = stop
    yield ""
