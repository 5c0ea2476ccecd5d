"""Whether a queue keeps its promises on the pristine releases it was made for.

Every patch of a series is applied to the release's text and judged there; its
sketch must be false below and true above, and every hunk guarded (docs/sketches.md,
R16). The lock that a push relies on is made of the same steps.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from patchq.engine import apply, judge, sketch, takeback, unasked
from patchq.errors import ExitCode, PatchqError, UsageError
from patchq.linted import Fault, Judged, Mends
from patchq.model import Lock, Patch, Series, Sha256, sha256
from patchq.queue import holding, orphans, verdicts, writing
from patchq.queue import lock as locks
from patchq.queue import store as queues
from patchq.releases import store as releases
from patchq.report import Report


def lint(queue: queues.Queue, only: str | None, *, cache: Path, write: bool) -> Report:
    """Judge the series of all releases, or of one; `write` puts the locks on disk."""
    if not queue.releases:
        raise UsageError(
            f"queue {queue.name} has no series",
            why=f"no folder of {queue.folder} has a file 'series'",
            mend=f"make {queue.folder}/RELEASE/series, and name the patches in it",
        )
    lines: list[str] = [*holding.settled(queue.folder)] if write else []
    judged: list[Judged] = []
    wanted = (only,) if only else queue.releases
    faults = _missing(queue, wanted, cache) + _orphans(queue)
    for release in wanted:
        entries = tuple(queues.each(queue, release))
        readable = tuple(one for _, one in entries if isinstance(one, Patch))
        series = Series(release, readable, queues.lock(queue, release))
        with releases.Store(queue.distribution, cache / "releases") as store:
            if not store.has(release):
                continue
            results, fresh = _series(queue, release, entries, store)
        judged += results
        lines += [line for one in results for line in one.lines]
        if fresh is None and write:
            lines.append(
                f"{release} series.lock not written: not every patch applies and is readable"
            )
        if fresh is not None:
            _keep(cache, fresh, results)
            faulty = any(one.faults for one in results)
            faults += _lock(queue, series, fresh, lines, write=write, faulty=faulty)
    bad = any(one.faults for one in judged) or bool(faults)
    said = tuple(f"{fault}; mend: {fault.mend}" for fault in faults)
    document = {
        "verb": "lint",
        "queue": queue.name,
        "patches": [one.to_json() for one in judged],
        "faults": list(said),
        "details": [fault.to_json() for fault in faults],
        "written": write,
    }
    code = ExitCode.FAILED if bad else ExitCode.DONE
    return Report(tuple(lines), said, document, code)


def _orphans(queue: queues.Queue) -> list[Fault]:
    folder = str(queue.folder)
    return [Fault(str(one), one.name, mend=one.mend(folder)) for one in orphans.orphans(queue)]


def _missing(queue: queues.Queue, wanted: tuple[str, ...], cache: Path) -> list[Fault]:
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
        Fault(
            f"{release} not judged: its pristine text is not here",
            mend=f"patchq fetch {queue.distribution}=={release}",
        )
        for release in missing
    ]


def _keep(cache: Path, fresh: Lock, results: list[Judged]) -> None:
    """Remember the verdicts, so that a push need not judge these steps again."""
    kept = verdicts.VerdictCache(cache / "verdicts")
    for pinned, one in zip(fresh.patches, results, strict=True):
        if one.verdict is not None:
            document = {"holds": one.verdict.holds, **one.verdict.to_json()}
            kept.put(verdicts.of(pinned, fresh.release), document)


def _lock(
    queue: queues.Queue,
    series: Series,
    fresh: Lock,
    lines: list[str],
    *,
    write: bool,
    faulty: bool,
) -> list[Fault]:
    """Write the lock, or say how the one on disk differs."""
    path = queue.folder / series.release / "series.lock"
    text = locks.format(fresh)
    if series.lock is not None and path.read_bytes() == text:
        return []
    if write:
        writing.write(path, text)
        spite = ", in spite of the faults" if faulty else ""
        lines.append(f"{series.release} series.lock written{spite}")
        return []
    if series.lock is None:
        word = "is missing"
    else:
        word = f"is stale: {locks.stale(series.lock, series) or _differs(series.lock, fresh)}"
    mend = f"patchq lint --write --queue {queue.folder}"
    return [Fault(f"{series.release} series.lock {word}", mend=mend)]


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


def _series(
    queue: queues.Queue,
    release: str,
    entries: Sequence[tuple[str, Patch | PatchqError]],
    store: releases.Store,
) -> tuple[list[Judged], Lock | None]:
    """Judge a series patch by patch, without those that cannot be read.

    No lock where a patch does not apply, or something of it cannot be read.
    """
    patches = [one for _, one in entries if isinstance(one, Patch)]
    touched = tuple(dict.fromkeys(path for patch in patches for path in patch.paths))
    tree: dict[str, apply.File | None] = dict.fromkeys(touched)
    tree.update(store.read_many(release, touched))
    base = dict(tree)
    listing = store.installed(release)
    results: list[Judged] = []
    for name, patch in entries:
        sketched = patch.sketch_name if isinstance(patch, Patch) else ""
        mends = Mends(str(queue.folder), release, name, sketched)
        if isinstance(patch, PatchqError):
            results.append(Judged(release, name, (mends.unread(patch),)))
            continue
        done = apply.apply_patch(patch, tree.get)
        if isinstance(done, apply.PatchRejected):
            fault = f"does not apply to {queue.distribution} {release}: {done.message}"
            moved = apply.apply_patch(patch, tree.get, search=True)
            if isinstance(moved, apply.PatchApplied):
                fault += f"; it fits where its lines have moved to ({_offsets(moved)})"
            below = [one.patch for one in results if one.reads is None]
            fault += f"; {', '.join(below)} below it could not be read" if below else ""
            results.append(Judged(release, name, (mends.patched(fault),)))
            return results, None
        results.append(_patch(patch, done, tree, mends, store, listing))
        tree.update(done.after)
    reads = {one.patch: one.reads for one in results if one.reads is not None}
    if len(reads) < len(results):
        return results, None
    fresh = locks.make(
        queue.distribution, release, store.tree(release), patches, read=base.get, reads=reads
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
    mends: Mends,
    store: releases.Store,
    listing: Iterable[str],
) -> Judged:
    def read(path: str) -> bytes | None:
        if path in tree:
            file = tree[path]
            return None if file is None else file[0]
        return store.read(mends.release, path)

    if not done.changes:
        fault = mends.patched("it changes nothing: there is no diff in it")
        return Judged(mends.release, patch.name, (fault,), reads={})
    parsed, unread = None, None
    try:
        if patch.sketch is not None:
            parsed = sketch.load(patch.sketch, name=patch.sketch_name)
    except PatchqError as error:
        unread = mends.unread(error)
    before = {change.path: tree.get(change.path) for change in done.changes}
    verdict = judge.judge(
        {path: file and file[0] for path, file in before.items()},
        {path: file and file[0] for path, file in done.after.items()},
        parsed,
        mends.release,
        read,
        diffs=patch.diffs,
        listing=listing,
    )
    if unread:
        faults = (unread, *map(mends.fault, verdict.findings))
        return Judged(mends.release, patch.name, faults)
    texts = {path: read(path) for path in verdict.reads}
    reads = {path: None if text is None else sha256(text) for path, text in texts.items()}
    back = takeback.Back(patch, tree.get, mends.release, read, listing=listing)
    return _sketched(patch, parsed, verdict, reads, back, mends)


def _sketched(
    patch: Patch,
    parsed: sketch.Sketch | None,
    verdict: judge.Verdict,
    reads: Mapping[str, Sha256 | None],
    back: takeback.Back,
    mends: Mends,
) -> Judged:
    """Judge what the sketch asks, and what guards each hunk."""
    findings = verdict.findings
    asked = sum(not claim.given for claim in verdict.above)
    nature = "" if asked or not verdict.holds else back.nature
    if not nature and not any(one.kind == "syntax" for one in findings):
        findings += judge.lint(verdict)  # with a fault of syntax no claim could hold
    guards: tuple[takeback.Guard, ...] = ()
    if verdict.holds and (verdict.above or nature):
        guards = tuple(back.guards(parsed))
        findings += tuple(one.finding() for one in guards if one.bare)
    return Judged(
        mends.release,
        patch.name,
        tuple(map(mends.fault, findings)),
        asked,
        reads,
        verdict,
        guards,
        () if parsed is None else unasked.unasked(parsed, mends.release),
        nature,
    )
