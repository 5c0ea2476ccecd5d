"""A patch that was just written, judged as a push will judge it: said, not refused.

What is edited is live already, and may be half done. So a fault is a warning here; a push of the
patch elsewhere, and `lint`, refuse it. Only a fetched release is judged on.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from patchq.engine import sketch
from patchq.engine.verdict import Verdict
from patchq.errors import PatchqError
from patchq.model import Lock, Patch, Sha256, sha256
from patchq.queue import lock as locks
from patchq.queue import store, writing
from patchq.rebase.tree import Tree
from patchq.releases.store import Store


def review(queue: store.Queue, release: str, name: str, cache: Path) -> tuple[str, ...]:
    """Judge a patch of a series, note in the lock what that read; return warnings."""
    releases = Store(queue.distribution, cache / "releases")
    if not releases.path.is_dir():
        return ()
    with releases:
        if not releases.has(release):
            return ()
        pinned = store.lock(queue, release)
        whole = [one for _, one in store.each(queue, release) if isinstance(one, Patch)]
        mine = next((one for one in whole if one.name == name), None)
        if pinned is None or mine is None or name not in [one.name for one in pinned.patches]:
            return ()
        tree = Tree(releases, release)
        if not mine.diffs:
            _note(queue, release, pinned, {}, releases.tree(release))
            return ()
        try:
            verdict = _judged(tree, whole, mine)
        except PatchqError as error:
            return (f"{error.what}: {error.why}",)
        texts = {path: tree.read(path) for path in verdict.reads}
        reads = {path: None if text is None else sha256(text) for path, text in texts.items()}
        _note(queue, release, pinned, {name: reads}, releases.tree(release))
    return tuple(_warnings(mine, verdict))


def _judged(tree: Tree, whole: list[Patch], mine: Patch) -> Verdict:
    for one in whole:
        if one.name == mine.name:
            break
        tree.put(one)
    parsed = None if mine.sketch is None else sketch.load(mine.sketch, name=mine.sketch_name)
    return tree.judge(tree.put_aside(mine), parsed, mine.diffs)


def _note(
    queue: store.Queue,
    release: str,
    pinned: Lock,
    reads: dict[str, dict[str, Sha256 | None]],
    tree: str,
) -> None:
    patches = tuple(
        replace(one, reads=reads[one.name]) if one.name in reads else one for one in pinned.patches
    )
    fresh = replace(pinned, patches=patches, tree=tree)
    if fresh != pinned:
        writing.write(queue.folder / release / "series.lock", locks.format(fresh))


def _warnings(patch: Patch, verdict: Verdict) -> list[str]:
    out = [f"Warning: {finding}" for finding in verdict.findings]
    for claim in verdict.above:
        if not claim.held:
            spot = f"{claim.path}:{claim.at}" if claim.at else claim.path
            out.append(f"Warning: {spot}: {claim.code!r} of {patch.sketch_name} does not hold")
    if any(not claim.held for claim in verdict.above):
        out.append(f"mend: edit the sketch, or: patchq sketch {patch.stem} --write --force")
    if patch.sketch is None and any(path.endswith(".py") for path in patch.paths):
        out.append(
            f"Warning: {patch.name} has no sketch, so nobody can tell whether a release has what"
            f" it is for; mend: patchq sketch {patch.stem} --write"
        )
    elif verdict.upstream:
        out.append(f"Warning: {patch.sketch_name} holds below {patch.name}, too: it asks nothing")
    return out
