"""Apply patches to surveyed bytes and judge each step; verdicts are paid for once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from patchq.engine import apply
from patchq.errors import ConflictError, PatchqError
from patchq.model import Lock, LockedPatch, Patch, PathChange, Survey, sha256
from patchq.plan import Conflict, Kind
from patchq.queue import verdicts

if TYPE_CHECKING:  # libcst comes with the judge: loaded only when something is judged
    from patchq.engine import judge

Tree = dict[str, "apply.File | None"]


@dataclass(frozen=True, slots=True)
class Step:
    """One patch on one tree: the files it touches, before and after."""

    patch: Patch
    changes: tuple[PathChange, ...]
    before: Mapping[str, apply.File | None]
    after: Mapping[str, apply.File | None]


@dataclass(slots=True)
class Neighbours:
    """Text of files around the touched ones, and the paths that were not at hand."""

    survey: Survey
    tree: Mapping[str, apply.File | None] = field(default_factory=dict)
    more: dict[str, bytes | None] = field(default_factory=dict)
    missing: dict[str, None] = field(default_factory=dict)

    def read(self, path: str) -> bytes | None:
        """Return a file's text as it lies below the patch that is judged."""
        if path in self.tree:
            file = self.tree[path]
            return None if file is None else file[0]
        if path in self.more:
            return self.more[path]
        found = self.survey.files.get(path)
        if found is not None and found.state.sha256 is None:
            return None
        data = (
            self.survey.contents.get(found.state.sha256) if found and found.state.sha256 else None
        )
        if data is None:
            self.missing[path] = None
        return data


def tree_of(survey: Survey, paths: tuple[str, ...]) -> Tree:
    """Return the surveyed files at `paths`; their bytes came with the survey."""
    tree: Tree = {}
    for path in paths:
        state = survey.files[path].state
        tree[path] = (
            None if state.sha256 is None else (survey.contents[state.sha256], state.executable)
        )
    return tree


def walk(patches: tuple[Patch, ...], lock: Lock, below: Tree) -> tuple[list[Step], Tree]:
    """Apply patch after patch to the files `below`; return the steps and the result.

    Raises:
        PatchqError: a patch gives other bytes than the lock says.
    """
    pinned = {patch.name: patch for patch in lock.patches}
    steps, tree = [], dict(below)
    for patch in patches:
        result = apply.apply_patch(patch, tree.get)
        if isinstance(result, apply.PatchRejected):
            raise _stale(patch.name, lock, result.message)
        if tuple(result.changes) != pinned[patch.name].changes:
            raise _stale(patch.name, lock, "it gives other bytes than the lock has")
        if not result.changes and patch.text.strip():
            raise ConflictError(
                f"{patch.name} changes nothing",
                why="there is no diff in it, so nobody could say that it is applied",
                mend="put a diff into it, or take it out of the series",
            )
        before = {change.path: tree.get(change.path) for change in result.changes}
        steps.append(Step(patch, tuple(result.changes), before, dict(result.after)))
        tree.update(result.after)
    return steps, tree


def _stale(name: str, lock: Lock, why: str) -> PatchqError:
    return PatchqError(
        f"{name} does not do what series.lock says for {lock.distribution} {lock.release}",
        why=why,
        mend="patchq lint --write",
    )


def cached(cache: Path, lock: Lock) -> frozenset[str]:
    """Return the patches of a series whose good verdict is in the cache."""
    kept = verdicts.VerdictCache(cache / "verdicts")
    return frozenset(
        patch.name
        for patch in lock.patches
        if (kept.get(verdicts.of(patch, lock.release)) or {}).get("holds") is True
    )


def judge_step(step: Step, release: str, read: Callable[[str], bytes | None]) -> judge.Verdict:
    """Judge one step on the text around it."""
    from patchq.engine import judge as judging
    from patchq.engine import sketch

    text = step.patch.sketch
    parsed = None if text is None else sketch.load(text, name=step.patch.sketch_name)
    return judging.judge(
        {path: file and file[0] for path, file in step.before.items()},
        {path: file and file[0] for path, file in step.after.items()},
        parsed,
        release,
        read,
        diffs=step.patch.diffs,
    )


def keep(cache: Path, pinned: LockedPatch, release: str, verdict: judge.Verdict) -> None:
    """Remember a verdict."""
    verdicts.VerdictCache(cache / "verdicts").put(
        verdicts.of(pinned, release), {"holds": verdict.holds, **verdict.to_json()}
    )


def conflicts_of(step: Step, verdict: judge.Verdict) -> list[Conflict]:
    """Return why a judged step must not become live."""
    out = [
        Conflict(
            Kind.JUDGEMENT,
            step.patch.name,
            finding.path,
            str(finding) if finding.path else finding.message,
            detail=finding.why,
        )
        for finding in verdict.findings
    ]
    unread = {finding.path for finding in verdict.findings if finding.kind == "syntax"}
    for claim in verdict.above:
        if not claim.held and claim.path not in unread:
            spot = f"{claim.path}:{claim.at}" if claim.at else claim.path
            out.append(
                Conflict(
                    Kind.JUDGEMENT,
                    step.patch.name,
                    claim.path,
                    f"{spot}: {claim.where or 'module'}: {claim.code!r} does not hold",
                    detail=f"{claim.nearest} ({step.patch.sketch_name}:{claim.line})",
                )
            )
    return out


def texts(patches: tuple[Patch, ...]) -> dict[str, bytes]:
    """Return the patches' texts by hash, as an environment keeps them."""
    return {sha256(patch.text): patch.text for patch in patches}
