"""The word for a queue of which nothing is recorded: by the files alone."""

from __future__ import annotations

from collections.abc import Iterator

from patchq import standing
from patchq.audit.finding import Case, Finding, Word, count, differs, orphaned, some
from patchq.model import ABSENT, FileState, Lock, Survey

REINSTALL = "reinstall the distribution, then: patchq push -a"


def judge(case: Case) -> Finding:
    """Return the word for a queue that has nothing on the recorded stack."""
    found = _unrecorded(case) or _half(case) or _edited(case)
    if found is not None:
        return found
    if case.left:
        reason = "the files are as the release has them, and no record is there"
        return orphaned(case, reason, case.left)
    return _nothing(case)


def pristine(survey: Survey, path: str, base: FileState) -> bool:
    """Return whether a file is as released: by the lock's base, or by RECORD for another build."""
    now, found = standing.live(survey, path), survey.files.get(path)
    if now == base:
        return True
    listed = found.recorded if found is not None else None
    return listed is not None and listed == now.sha256 and now.sha256 != base.sha256


def _tree(case: Case, lock: Lock, number: int) -> dict[str, FileState]:
    """Return the touched files as the lowest `number` patches leave them, below other queues."""
    tree = dict(lock.base)
    for patch in lock.patches[:number]:
        tree.update((change.path, change.after) for change in patch.changes)
    says = standing.recorded(case.survey.stack)
    return {path: says.get(path, state) for path, state in tree.items()}


def _prefix(case: Case, lock: Lock) -> int:
    """Return after how many patches of a series the files are as they are, 0 for none."""
    base = _tree(case, lock, 0)
    for number in range(len(lock.patches), 0, -1):
        tree = _tree(case, lock, number)
        same = all(
            path in case.survey.files and standing.live(case.survey, path) == state
            for path, state in tree.items()
        )
        changed = [path for path, state in tree.items() if state != base[path]]
        if same and changed and any(state.sha256 for state in tree.values()):
            # What another release installed so is no work of ours.
            return number if _ours(case, lock, changed) else 0
    return 0


def _ours(case: Case, lock: Lock, paths: list[str]) -> bool:
    have = case.survey.installed
    if have is None or standing.public(have.version) == lock.release:
        return True
    files = case.survey.files
    return any(files[path].recorded != files[path].state.sha256 for path in paths)


def _series(case: Case) -> Iterator[tuple[Lock, str | None, int]]:
    """Yield today's series, the one that fits first, then those of the queue's commits."""
    choice = case.choice
    first = [choice.release] if choice else []
    for release in dict.fromkeys([*first, *case.locks]):
        lock = case.locks.get(release)
        if lock is not None:
            yield lock, None, 0
    # git is asked only where files are neither as released nor as today's queue has them.
    if choice is not None and choice.how == "version" and _differing(case):
        for past in case.past(choice.release):
            yield past.lock, past.commit, past.back


def _unrecorded(case: Case) -> Finding | None:
    """Return unrecorded where the files are as after the first patches of a series."""
    for lock, commit, back in _series(case):
        number = _prefix(case, lock)
        if not number:
            continue
        whole = count(len(lock.patches), "patch", "patches")
        why = f"the files are as after {number} of {whole} of series {lock.release}"
        why += f" of commit {commit[:12]}" if commit else ""
        why += "; no record says who did that"
        if case.left and case.last:
            why += f", and the ledger's last receipt is: {case.last}"
        changes = [change for patch in lock.patches[:number] for change in patch.changes]
        paths = tuple(dict.fromkeys(change.path for change in changes))
        behind = back if commit else None
        return Finding(Word.UNRECORDED, why, lock.release, paths, behind, commit, REINSTALL)
    return None


def _half(case: Case) -> Finding | None:
    """Return partial where each file is as some patch leaves it, and no prefix is whole."""
    choice = case.choice
    lock = case.locks.get(choice.release) if choice and choice.how == "version" else None
    if lock is None:
        return None
    base = _tree(case, lock, 0)
    before, after = [], {}
    for path, state in base.items():
        now = standing.live(case.survey, path)
        ends = [
            patch.name
            for patch in lock.patches
            for change in patch.changes
            if change.path == path and change.after == now
        ]
        if now == state:
            before.append(path)
        elif ends:
            after[path] = ends[-1]
        else:
            return None
    if not after:
        return None
    texts = [f"{path} is as after {name}" for path, name in after.items()]
    why = f"no record, and the files are half in: {some(texts)}"
    if before:
        why += f"; as before it: {some(before)}"
    return Finding(Word.PARTIAL, why, lock.release, tuple(after), mend=REINSTALL)


def _edited(case: Case) -> Finding | None:
    """Return drifted or unmanaged where a file is not what the release or the record says."""
    found = _differing(case)
    if not found:
        return None
    release = case.choice.release if case.choice else None
    why = some(differs(path, *states) for path, states in found.items())
    if case.survey.stack:
        return Finding(Word.DRIFTED, why, release, tuple(found), mend="patchq diff -z")
    why = f"{why}; no record says who did that"
    if case.left and case.last:
        why += f", and the ledger's last receipt is: {case.last}"
    return Finding(Word.UNMANAGED, why, release, tuple(found), mend="patchq diff -z")


def _differing(case: Case) -> dict[str, tuple[FileState, FileState]]:
    """Return files that the queue names and that are not as recorded or released.

    Path -> (expected, found). Neighbours that a verdict read are among them.
    """
    survey, choice = case.survey, case.choice
    says = standing.recorded(survey.stack)
    lock = case.locks.get(choice.release) if choice else None
    base = lock.base if lock else {}
    named = {path for one in case.locks.values() if one for path in (*one.base, *_reads(one))}
    out: dict[str, tuple[FileState, FileState]] = {}
    for path in sorted(named & survey.files.keys()):
        now, listed = survey.files[path].state, survey.files[path].recorded
        if path in says:
            expected = says[path]
        elif path in base and now.sha256 in (listed, base[path].sha256):
            # Another build's text is as installed; of the lock's own text the mode counts, too.
            expected = base[path] if now.sha256 == base[path].sha256 else now
        elif listed is not None:
            expected = FileState(listed, now.executable)
        elif path in base:
            expected = base[path]
        else:
            expected = ABSENT  # RECORD does not list it
        if now != expected:
            out[path] = expected, now
    return out


def _reads(lock: Lock) -> tuple[str, ...]:
    return tuple(path for patch in lock.patches for path in patch.reads)


def _nothing(case: Case) -> Finding:
    """Return missing or no series: all files are as released."""
    choice = case.choice
    have = case.survey.installed
    version = have.version if have else ""
    refusal = case.survey.refusal or {}
    if refusal.get("word") == "editable":  # its files are elsewhere
        return Finding(Word.NO_SERIES, f"{refusal['what']}: {refusal['why']}", mend="patchq check")
    if choice is None:
        known = ", ".join(case.locks) or "no release"
        why = f"the queue has series for {known}; {version} is installed"
        return Finding(Word.NO_SERIES, why, mend="patchq check")
    lock = case.locks.get(choice.release)
    if lock is None:
        why = f"series {choice.release} has no series.lock; the files are as RECORD has them"
        return Finding(Word.MISSING, why, choice.release, mend="patchq lint --write")
    base = _tree(case, lock, 0)
    other = {p: s for p, s in base.items() if standing.live(case.survey, p) != s}
    if other:
        texts = (differs(p, s, standing.live(case.survey, p)) for p, s in other.items())
        why = f"series {choice.release} was made on other text than this build's: {some(texts)}"
        return Finding(Word.NO_SERIES, why, None, tuple(other), mend="patchq check")
    why = f"none of {count(len(lock.patches), 'patch', 'patches')} of series {choice.release}"
    return Finding(Word.MISSING, why, choice.release, mend="patchq push -a")
