"""Whether a queue keeps its promises on the pristine releases it was made for.

Every patch of a series is applied to the release's text and judged there; its
sketch must be false below and true above, and every hunk guarded (docs/sketches.md,
R16). The lock that a push relies on is made of the same steps.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from patchq.engine import apply, judge, sketch, takeback, unasked
from patchq.errors import ExitCode, PatchqError, UsageError
from patchq.model import Lock, Patch, Series, Sha256, sha256
from patchq.queue import lock as locks
from patchq.queue import store as queues
from patchq.queue import verdicts
from patchq.releases import store as releases
from patchq.report import Report


@dataclass(frozen=True, slots=True)
class Judged:
    """One patch of one release: what is wrong, and how many claims its sketch makes.

    `guards`: what breaks without each hunk, where the patch is good as a whole;
    `unasked`: what the sketch does not ask of this release.
    """

    release: str
    patch: str
    faults: tuple[str, ...]
    claims: int
    reads: Mapping[str, Sha256 | None]
    verdict: judge.Verdict | None = None
    guards: tuple[takeback.Guard, ...] = ()
    unasked: tuple[unasked.Unasked, ...] = ()

    @property
    def notes(self) -> Iterator[str]:
        """What is to be known and is no fault."""
        for one in self.unasked:
            yield f"not asked of {self.release}: {one}"
        for guard in self.guards:
            if guard.nature:
                place = f"{guard.piece.path}:{guard.piece.line or 1}"
                yield f"{place}: {guard.piece} cannot be guarded: {guard.nature}"

    def to_json(self) -> dict[str, object]:
        """Return the result as ``--json`` shows it."""
        return {
            "release": self.release,
            "patch": self.patch,
            "claims": self.claims,
            "faults": list(self.faults),
            "hunks": [guard.to_json() for guard in self.guards],
            "unasked": [one.to_json() for one in self.unasked],
        }


def lint(queue: queues.Queue, only: str | None, *, cache: Path, write: bool) -> Report:
    """Judge the series of all releases, or of one; `write` puts the locks on disk."""
    if not queue.releases:
        raise UsageError(
            f"queue {queue.name} has no series",
            why=f"no folder of {queue.folder} has a file 'series'",
            mend=f"make {queue.folder}/RELEASE/series, and name the patches in it",
        )
    lines: list[str] = []
    judged: list[Judged] = []
    wanted = (only,) if only else queue.releases
    faults = _missing(queue, wanted, cache)
    for release in wanted:
        series = queues.load(queue, release)
        with releases.Store(queue.distribution, cache / "releases") as store:
            if not store.has(release):
                continue
            results, fresh = _series(queue, series, store)
        judged += results
        for one in results:
            lines.append(f"{release} {one.patch}: {_word(one)}")
            lines += [f"    {said}" for said in (*one.faults, *one.notes)]
        if fresh is None and write:
            lines.append(f"{release} series.lock not written: not every patch applies")
        if fresh is not None:
            _keep(cache, fresh, results)
            faulty = any(one.faults for one in results)
            faults += _lock(queue, series, fresh, lines, write=write, faulty=faulty)
    bad = any(one.faults for one in judged) or bool(faults)
    document = {
        "verb": "lint",
        "queue": queue.name,
        "patches": [one.to_json() for one in judged],
        "faults": faults,
        "written": write,
    }
    code = ExitCode.FAILED if bad else ExitCode.DONE
    return Report(tuple(lines), tuple(faults), document, code)


def _missing(queue: queues.Queue, wanted: tuple[str, ...], cache: Path) -> list[str]:
    """Return a fault for each release that is not here; with none here there is nothing to say."""
    with releases.Store(queue.distribution, cache / "releases") as store:
        missing = [release for release in wanted if not store.has(release)]
    if len(missing) == len(wanted):
        raise PatchqError(
            f"the pristine text of {queue.distribution} {missing[0]} is not here",
            why="a series is judged on the release that it was made for",
            mend=f"patchq fetch {queue.distribution}=={missing[0]}",
        )
    return [
        f"{release} not judged: its pristine text is not here; "
        f"mend: patchq fetch {queue.distribution}=={release}"
        for release in missing
    ]


def _keep(cache: Path, fresh: Lock, results: list[Judged]) -> None:
    """Remember the verdicts, so that a push need not judge these steps again."""
    kept = verdicts.VerdictCache(cache / "verdicts")
    for pinned, one in zip(fresh.patches, results, strict=True):
        if one.verdict is not None:
            document = {"holds": one.verdict.holds, **one.verdict.to_json()}
            kept.put(verdicts.of(pinned, fresh.release), document)


def _word(one: Judged) -> str:
    if one.faults:
        return "1 fault" if len(one.faults) == 1 else f"{len(one.faults)} faults"
    claims = f"good, {one.claims} claim{'' if one.claims == 1 else 's'} false below and true above"
    kept = sum(bool(guard.by) for guard in one.guards)
    return (
        f"{claims}, {kept} of {len(one.guards)} hunk{'' if len(one.guards) == 1 else 's'} guarded"
    )


def _lock(
    queue: queues.Queue,
    series: Series,
    fresh: Lock,
    lines: list[str],
    *,
    write: bool,
    faulty: bool,
) -> list[str]:
    """Write the lock, or say how the one on disk differs."""
    path = queue.folder / series.release / "series.lock"
    text = locks.format(fresh)
    if series.lock is not None and path.read_bytes() == text:
        return []
    if write:
        _replace(path, text)
        spite = ", in spite of the faults" if faulty else ""
        lines.append(f"{series.release} series.lock written{spite}")
        return []
    if series.lock is None:
        word = "is missing"
    else:
        word = f"is stale: {locks.stale(series.lock, series) or _differs(series.lock, fresh)}"
    mend = f"patchq lint --write --queue {queue.folder}"
    return [f"{series.release} series.lock {word}; mend: {mend}"]


def _differs(kept: Lock, fresh: Lock) -> str:
    """Return how a lock of the very same patches is not what the release gives."""
    for name in ("distribution", "release", "tree"):
        was, now = getattr(kept, name), getattr(fresh, name)
        if was != now:
            return f"it has {name} {was}, found {now}"
    for old, new in zip(kept.patches, fresh.patches, strict=True):
        if old.changes != new.changes:
            return f"{new.name} gives other files than it says"
        if old.reads != new.reads:
            return f"{new.name} was judged beside other files than it says"
    return "it is not laid out as patchq writes it"


def _said(one: judge.Finding) -> str:
    text = str(one) if one.path else one.message
    return f"{text}; {one.why}" if one.why else text


def _replace(path: Path, text: bytes) -> None:
    """Put a file in place whole: staged beside it, then renamed."""
    staged = path.with_name(f".{path.name}.new")
    staged.write_bytes(text)
    os.replace(staged, path)


def _series(
    queue: queues.Queue, series: Series, store: releases.Store
) -> tuple[list[Judged], Lock | None]:
    """Judge a series patch by patch; no lock where a patch does not apply."""
    touched = tuple(dict.fromkeys(path for patch in series.patches for path in patch.paths))
    tree: dict[str, apply.File | None] = dict.fromkeys(touched)
    tree.update(store.read_many(series.release, touched))
    base = dict(tree)
    listing = store.installed(series.release)
    results = []
    for patch in series.patches:
        done = apply.apply_patch(patch, tree.get)
        if isinstance(done, apply.PatchRejected):
            fault = f"does not apply to {queue.distribution} {series.release}: {done.message}"
            moved = apply.apply_patch(patch, tree.get, search=True)
            if isinstance(moved, apply.PatchApplied):
                fault += f"; it fits where its lines have moved to ({_offsets(moved)})"
            results.append(Judged(series.release, patch.name, (fault,), 0, {}))
            return results, None
        results.append(_patch(patch, done, tree, series.release, store, listing))
        tree.update(done.after)
    reads = {one.patch: one.reads for one in results}
    fresh = locks.make(
        queue.distribution,
        series.release,
        store.tree(series.release),
        series.patches,
        read=base.get,
        reads=reads,
    )
    return results, fresh


def _offsets(moved: apply.PatchApplied) -> str:
    return ", ".join(
        f"{path}: {', '.join(f'{offset:+} lines' for offset in offsets)}"
        for path, offsets in moved.offsets.items()
    )


def _patch(
    patch: Patch,
    done: apply.PatchApplied,
    tree: Mapping[str, apply.File | None],
    release: str,
    store: releases.Store,
    listing: Iterable[str],
) -> Judged:
    def read(path: str) -> bytes | None:
        if path in tree:
            file = tree[path]
            return None if file is None else file[0]
        return store.read(release, path)

    parsed = None
    if patch.sketch is not None:
        parsed = sketch.load(patch.sketch, name=patch.sketch_name)
    before = {change.path: tree.get(change.path) for change in done.changes}
    verdict = judge.judge(
        {path: file and file[0] for path, file in before.items()},
        {path: file and file[0] for path, file in done.after.items()},
        parsed,
        release,
        read,
        diffs=patch.diffs,
        listing=listing,
    )
    if not done.changes:
        return Judged(release, patch.name, ("it changes nothing: there is no diff in it",), 0, {})
    findings = verdict.findings
    if not any(one.kind == "syntax" for one in findings):  # else no claim could hold
        findings += judge.lint(verdict)
    held: tuple[takeback.Guard, ...] = ()
    if verdict.holds and verdict.above:
        back = takeback.Back(patch, tree.get, release, read, listing=listing)
        held = tuple(back.guards(parsed))
        findings += tuple(one.finding() for one in held if one.bare)
    faults = tuple(_said(one) for one in findings)
    texts = {path: read(path) for path in verdict.reads}
    reads = {path: None if text is None else sha256(text) for path, text in texts.items()}
    left = () if parsed is None else unasked.unasked(parsed, release)
    return Judged(release, patch.name, faults, len(verdict.above), reads, verdict, held, left)
