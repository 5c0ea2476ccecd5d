"""The word for a case: the rules that come before any series, and those of a record."""

from __future__ import annotations

from dataclasses import replace

from patchq import standing
from patchq.audit import bare
from patchq.audit.finding import Case, Finding, Past, Word, count, differs, orphaned, some
from patchq.audit.held import differing, reached, shared
from patchq.model import AppliedPatch, FileState, Lock, effect_id

_AGAIN = "patchq pop -a, then: patchq push -a"


def judge(case: Case) -> Finding:
    """Return the one word for this case (the rules are in `patchq.audit`)."""
    return _before_all(case) or _with_neighbours(case, _recorded(case)) or bare.judge(case)


def _with_neighbours(case: Case, finding: Finding | None) -> Finding | None:
    """Return a finding by the record that tells of edited files beside the touched ones."""
    if finding is None or not finding.word.settled:
        return finding
    says = standing.recorded(case.survey.stack)
    edited = [
        path
        for path, found in case.survey.files.items()
        if path not in says and found.recorded not in (None, found.state.sha256)
    ]
    if not edited:
        return finding
    return replace(finding, why=f"{finding.why}; beside it, edited since: {some(edited)}")


def _before_all(case: Case) -> Finding | None:
    """Return absent, interrupted or orphaned by the record, None where none of them is so."""
    survey = case.survey
    here = survey.installed is not None
    if not here and not case.lost and not case.left and not survey.interrupted:
        refusal = survey.refusal or {}
        return Finding(Word.ABSENT, refusal.get("why", ""))
    if here and not case.moved and (survey.interrupted or case.busy):
        return _interrupted(case)
    names = case.lost or (() if here else case.left)
    if names or (survey.interrupted and (case.moved or not here)):
        reason = survey.orphaned or "the distribution that it was made for is gone"
        return orphaned(case, reason, names)
    return None


def _interrupted(case: Case) -> Finding:
    if case.busy:
        by = f"{case.busy.get('who')} (process {case.busy.get('pid')})"
        why = f"a journal is there: {by} is at work since {case.busy.get('since')}"
        return Finding(Word.INTERRUPTED, why, mend="patchq audit   # when that has ended")
    journal = case.survey.interrupted or {}
    decided = "had passed" if journal.get("go") else "had not reached"
    why = f"the journal of a {journal.get('verb')} of {journal.get('since')} is there"
    return Finding(
        Word.INTERRUPTED, f"{why}; it {decided} its commit point", mend="patchq recover"
    )


def _recorded(case: Case) -> Finding | None:
    """Return the word where the record has patches of this queue, None where it has none."""
    held = case.held
    if not held:
        return None
    survey, release = case.survey, held[-1].release
    lock = case.locks.get(release)
    drift = _drift(case, lock)
    if drift:
        why = some(differs(path, *states) for path, states in drift.items())
        return Finding(Word.DRIFTED, why, release, tuple(drift), mend="patchq diff -z")
    if not case.in_sight:
        why = (
            f"the queue is not in sight; the record says that {_patches(held)} of series "
            f"{release} are on, and the files agree"
        )
        return Finding(Word.UNKNOWN, why, release, mend="patchq queues")
    reach = None if lock is None else reached(held, lock)
    if lock is None or reach is None:
        return _of_the_past(case, release, held)
    other = differing(survey.stack, held, lock)
    if other:
        return _agreeing(case, release, held) or _forged(release, other)
    if reach < len(lock.patches):
        above = [patch.name for patch in lock.patches[reach:]]
        why = f"{reach} of {len(lock.patches)} patches; not on: {', '.join(above)}"
        return Finding(Word.PARTIAL, why, release, mend="patchq push -a")
    edited = case.edited(release)
    if edited:
        why = f"the lock's series is on, and the queue here was edited since: {edited}"
        return Finding(Word.BEHIND, why, release, behind=0, mend="patchq lint --write")
    why = _whole(held, lock)
    also = [f"{path} ({queue})" for path, queue in shared(survey.stack, held).items()]
    if also:
        why += f"; other queues change files of it, too: {some(also)}"
    return Finding(Word.CURRENT, why, release)


def _drift(case: Case, lock: Lock | None) -> dict[str, tuple[FileState, FileState]]:
    """Return touched files that are neither recorded nor, where nothing is, pristine.

    Path -> (expected, found).
    """
    survey = case.survey
    base = lock.base if lock else {}
    says = standing.recorded(survey.stack)
    mine = {change.path for one in case.held for change in one.changes}
    out = {}
    for path in sorted(mine | base.keys()):
        now = standing.live(survey, path)
        right = now == says[path] if path in says else bare.pristine(survey, path, base[path])
        if not right:
            out[path] = says[path] if path in says else base[path], now
    return out


def _of_the_past(case: Case, release: str, held: tuple[AppliedPatch, ...]) -> Finding:
    """Return behind with the commit that had what is held, else unknown."""
    looked = 0
    other: dict[str, tuple[FileState, FileState]] = {}
    for past in case.past(release):
        looked += 1
        reach = reached(held, past.lock)
        if reach is not None:
            found = differing(case.survey.stack, held, past.lock)
            if not found:
                return _behind(case, release, past, reach)
            other = other or found
    if other:
        return _forged(release, other)
    effect = effect_id(change for one in held for change in one.changes)
    texts = ", ".join(f"{one.patch} sha256 {one.sha256[:12]}" for one in held)
    why = f"effect {effect[:12]} ({texts}) is in no commit of this queue"
    why += f"; {count(looked, 'commit has', 'commits have')} a series for {release}"
    if case.last is not None and case.last.commit:
        with_ = " with uncommitted changes" if case.last.dirty else ""
        why += f"; the last receipt names commit {case.last.commit[:12]}{with_}"
    return Finding(Word.UNKNOWN, why, release, mend="patchq diff   # shows the top patch")


def _agreeing(case: Case, release: str, held: tuple[AppliedPatch, ...]) -> Finding | None:
    """Return behind where a commit had the texts of today's lock with other files, else None."""
    for past in case.past(release):
        reach = reached(held, past.lock)
        if reach is not None and not differing(case.survey.stack, held, past.lock):
            return _behind(case, release, past, reach)
    return None


def _forged(release: str, other: dict[str, tuple[FileState, FileState]]) -> Finding:
    texts = [differs(p, *states).replace(", found", ", recorded") for p, states in other.items()]
    why = f"the record says other than the queue's lock: {some(texts)}"
    return Finding(Word.DRIFTED, why, release, tuple(other), mend=bare.REINSTALL)


def _behind(case: Case, release: str, past: Past, reach: int) -> Finding:
    all_ = len(past.lock.patches)
    which = f"{reach} of {count(all_, 'patch', 'patches')} of commit {past.commit[:12]}"
    ago = f"{count(past.back, 'commit', 'commits')} of this queue ago"
    why = f"{which}, {ago}" if past.back else f"{which}, the newest of this queue"
    if case.dirty():
        why += "; the queue here has uncommitted changes"
    return Finding(Word.BEHIND, why, release, behind=past.back, commit=past.commit, mend=_AGAIN)


def _whole(held: tuple[AppliedPatch, ...], lock: Lock) -> str:
    why = f"{_patches(held)}, series {lock.release}"
    if [one.sha256 for one in held] != [one.patch for one in lock.patches]:
        why += "; the same files from other texts: a header was edited since, or a patch divided"
    return why


def _patches(held: tuple[AppliedPatch, ...]) -> str:
    return count(len(held), "patch", "patches")
