"""Whether a patch may stay: its sketch below and above it, and the always-on checks.

Pure: texts in, a verdict out. Light to import. A patch without a sketch takes the
cheap road: the running Python's parser alone, never libcst unless a text is newer
than that.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from patchq.engine import definitions, duplicates, enclosing, imports, sketch, undefined
from patchq.engine.resolver import Resolver, World
from patchq.engine.sketch import Sketch
from patchq.engine.trees import Fault
from patchq.engine.verdict import Claim, Finding, Verdict
from patchq.model import FileDiff

__all__ = ["Claim", "Finding", "Sketch", "Verdict", "judge", "lint"]

Read = Callable[[str], bytes | None]
Texts = Mapping[str, bytes | None]


def judge(
    before: Texts,
    after: Texts,
    sketch_: Sketch | None,
    release: str,
    read: Read,
    *,
    diffs: Sequence[FileDiff] = (),
    listing: Iterable[str] | None = None,
    python: str | None = None,
) -> Verdict:
    """Judge one patch by the texts of every path it touches, before and after.

    `read` gives untouched neighbours. `diffs` let hunks be checked against their
    headings. `listing`: every installed path, if known (RECORD), which leaves no
    import in doubt. `python`: the ``x.y`` whose builtins the files may use, None
    for any.
    """
    below, above = World(before, read), World(after, read)
    found = list(_checks(below, above, diffs, listing, python))
    new = tuple(finding for finding, was in found if not was)
    old = tuple(finding for finding, was in found if was)
    if sketch_ is None:
        reads = sorted({**below.reads, **above.reads})
        return Verdict(findings=new, old_findings=old, reads=tuple(reads))
    claims = {
        "below": sketch.judge(sketch_, release, below.text, explain=False),
        "above": sketch.judge(sketch_, release, above.text),
        "leaves_below": sketch.leaves(sketch_, release, below.text),
        "leaves_above": sketch.leaves(sketch_, release, above.text),
    }
    return Verdict(
        **claims,
        findings=new,
        old_findings=old,
        notes=sketch.givens(sketch_, release),
        sketch=sketch_.name,
        reads=tuple(sorted({*below.reads, *above.reads})),
    )


def _checks(
    below: World,
    above: World,
    diffs: Sequence[FileDiff],
    listing: Iterable[str] | None,
    python: str | None,
) -> Iterator[tuple[Finding, bool]]:
    """The always-on checks; True where the file had the fault before."""
    before, after = below.texts, above.texts
    origin = {diff.new: diff.old for diff in diffs if diff.new and diff.old}
    origin = {path: was for path, was in origin.items() if before.get(path) is None}
    yield from _syntax(before, after, origin)
    result = Resolver(before, above, listing)
    base = Resolver(before, below, listing)
    yield from imports.check(result, base, origin)
    yield from undefined.check(result, base, origin, python)
    yield from duplicates.check(before, after, origin)
    yield from ((finding, False) for finding in enclosing.check(before, after, diffs))


def lint(verdict: Verdict) -> tuple[Finding, ...]:
    """Say where a sketch could not fail: R16, its first half.

    Each claim, and each leaf statement of a def alone, must be false below the
    patch and true above it; `# given` lines need only be true above. Where every line of
    a def alone is true on both sides and the def is not, their order is what it claims.
    The findings name lines of the sketch.
    """
    if not any(not claim.given for claim in verdict.above):
        said = "asks nothing of this release" if verdict.sketch else "has no sketch"
        why = "what proves nothing cannot tell a right result from a wrong one"
        what = "the sketch" if verdict.sketch else "the patch"
        return (Finding("no-claim", verdict.sketch, 0, "", f"{what} {said}", why),)
    pairs = list(zip(verdict.below, verdict.above, strict=True))
    found = [finding for pair in pairs for finding in _idle(verdict.sketch, *pair)]
    blamed = {(below.path, below.where) for below, above in pairs if below.held or not above.held}
    for leaves in _by_claim(verdict).values():
        for below, above in leaves:
            if (below.path, below.where) not in blamed:
                found += _idle(verdict.sketch, below, above)
    return (*found, *verdict.notes)


def _by_claim(verdict: Verdict) -> dict[int, list[tuple[Claim, Claim]]]:
    """The leaves of each claim, but of those that claim only how their lines go together."""
    starts = [claim.line for claim in verdict.above]
    found: dict[int, list[tuple[Claim, Claim]]] = {}
    for pair in zip(verdict.leaves_below, verdict.leaves_above, strict=True):
        # A leaf belongs to the claim that begins last above it.
        found.setdefault(bisect.bisect_right(starts, pair[1].line) - 1, []).append(pair)
    for number, (below, above) in enumerate(zip(verdict.below, verdict.above, strict=True)):
        whole = above.held and not below.held and not above.given
        if whole and all(one.held and other.held for one, other in found.get(number, ())):
            found.pop(number, None)
    return found


def _idle(name: str, below: Claim, above: Claim) -> Iterator[Finding]:
    said = f"`{above.code}`" + (f" in {above.where}" if above.where else "")
    if above.loose:
        yield Finding("too-loose", name, above.line, above.where, f"{said} is {above.nearest}")
    elif not above.held:
        message = f"{said} is false with the patch"
        yield Finding("false", name, above.line, above.where, message, above.nearest)
    elif below.held and not above.given:
        message = f"{said} is true without the patch"
        why = "it proves nothing: ask for what the patch brings, or mark it `# given`"
        yield Finding("idle", name, above.line, above.where, message, why)


def _syntax(
    before: Texts, after: Texts, origin: Mapping[str, str]
) -> Iterator[tuple[Finding, bool]]:
    """Texts that are not Python: those that the patch broke, those that were so before."""
    for path, data in after.items():
        if data is None or not path.endswith((".py", ".pyi")):
            continue
        fault = definitions.outline(data)
        if isinstance(fault, Fault):
            had = before.get(origin.get(path, path))
            was = definitions.outline(had) if had is not None else None
            same = isinstance(was, Fault) and (was.words, was.text) == (fault.words, fault.text)
            # What nobody read is not known to be as it was.
            yield _broken(path, fault), same and not fault.large


def _broken(path: str, fault: Fault) -> Finding:
    if fault.deep:
        return Finding("syntax", path, fault.line, "", fault.words, fault.aside)
    message = f"not Python at column {fault.column}: {fault.text.strip()!r}: {fault.words}"
    return Finding("syntax", path, fault.line, "", message, fault.aside)
