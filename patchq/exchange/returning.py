"""An edited branch brought back into the queue: found, held against its base, written."""

from __future__ import annotations

from pathlib import Path

from patchq import git, gitbranch
from patchq.errors import ExitCode, PatchqError
from patchq.exchange import incoming
from patchq.exchange.source import Source
from patchq.gitbranch import Found
from patchq.queue import editing, store, wayback
from patchq.report import Report


def bring(source: Source, folder: Path, *, dry_run: bool) -> Report:
    """Make the queue's series what the branch of a repository is; the lock is made anew.

    What the queue's own git does not have yet is kept as ``NAME~``.

    Raises:
        PatchqError: there is no such branch, or it stands on other files.
        GitError: the branch has a merge, a link or a submodule.
    """
    repository = gitbranch.found(folder)
    commits = _commits(source, repository)
    found = incoming.series_of(source, commits)
    edit = incoming.edit(source, found, store.series(source.queue, source.release))
    document = {
        "verb": "import",
        "queue": source.queue.name,
        "release": source.release,
        "branch": source.branch,
        "patches": [
            {"patch": one.name, "word": one.word, "commit": one.commit} for one in found.taken
        ],
        "removed": list(found.gone),
    }
    same = [one.name for one in found.taken] == [one.name for one in source.patches]
    if same and not found.changed:
        said = (*found.notes, f"The series is what branch {source.branch} is")
        return Report((), said, document, ExitCode.NOTHING_TO_DO)
    if dry_run:
        return Report(tuple(f"Would be {line}" for line in found.lines), found.notes, document)
    mine = [name for name in edit.files if edit.at(name).exists()]
    kept = git.kept(source.queue.folder, mine)
    if kept is None or not kept.issuperset(mine):
        edit = editing.Edit(edit.queue, edit.release, edit.series, edit.files, backup=True)
    back = wayback.told(edit, locked=not source.search)
    notes = editing.write(edit, None if source.search else source.read)
    where = "Where patches of it are on: patchq pop -a, then patchq push -a"
    said = (*found.notes, *notes, *back, where)
    return Report(found.lines, said, document)


def _commits(source: Source, repository: Path) -> tuple[Found, ...]:
    """Return the commits of the branch above the pristine files."""
    name = f"refs/heads/{source.branch}"
    if gitbranch.tip(repository, name) is None:
        there = ", ".join(gitbranch.branches(repository)) or "none"
        raise PatchqError(
            f"there is no branch {source.branch} in {repository}",
            why=f"it has {there}; the branch is named for the queue and the release",
            mend="patchq export --git DIR, or name another series: --queue, --release",
        )
    base = None
    if source.base.repository is not None:
        base = gitbranch.tip(source.base.repository, source.base.reference)
    root, commits = gitbranch.log(repository, name, base)
    if base is not None:
        if root != base:
            raise _elsewhere(source, root, f"the release is {base[:12]}")
        return commits
    paths = {path for one in commits for path in one.after}
    paths.update(path for patch in source.patches for path in patch.paths)
    for path, file in gitbranch.files(repository, root, sorted(paths)).items():
        if file != source.read(path):
            raise _elsewhere(source, root, f"{path} is another file here")
    return commits


def _elsewhere(source: Source, root: str, why: str) -> PatchqError:
    return PatchqError(
        f"branch {source.branch} does not stand on the pristine files of {source.title}",
        why=f"it begins at {root[:12]}, and {why}",
        mend="patchq export --git ANOTHER-DIR, and git cherry-pick your commits there",
    )
