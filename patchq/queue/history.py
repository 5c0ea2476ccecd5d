"""What a queue was: the series.lock that each commit of its folder had, by git.

Asked for a host whose patches are not today's. All is read once, and the user's own
repository is only read: ``git rev-list`` and ``git cat-file`` (`patchq.git`).
"""

from __future__ import annotations

from patchq import git
from patchq.audit.finding import Past
from patchq.errors import PatchqError
from patchq.model import Lock, sha256
from patchq.queue import lock as lock_file
from patchq.queue import reading, store

# Commits of one queue's folder; older ones are not looked at.
LIMIT = 2000


class History:
    """The past of one queue; git is asked when the first question comes."""

    def __init__(self, queue: store.Queue) -> None:
        self.queue = queue
        self._past: dict[str, tuple[Past, ...]] = {}
        self._edited: dict[str, str | None] = {}
        self._dirty: bool | None = None

    def past(self, release: str) -> tuple[Past, ...]:
        """Return the commits that had a lock for a release, newest first.

        Of equal locks one after the other the newest is there. One that cannot be read,
        as after a merge conflict, is left out.
        """
        if release not in self._past:
            self._past[release] = self._read(release)
        return self._past[release]

    def is_dirty(self) -> bool:
        """Return whether the queue's folder has uncommitted changes."""
        if self._dirty is None:
            self._dirty = store.commit(self.queue)[1]
        return self._dirty

    def edited(self, release: str) -> str | None:
        """Return in what the series' files differ from its lock, None for nothing.

        Sketches do not count: they change nothing in an environment.
        """
        if release not in self._edited:
            self._edited[release] = self._compare(release)
        return self._edited[release]

    def _compare(self, release: str) -> str | None:
        pinned = store.lock(self.queue, release)
        if pinned is None:
            return None
        sketches = {patch.name: patch.sketch for patch in pinned.patches}
        found = []
        for entry in store.series(self.queue, release).entries:
            text = reading.read(self.queue.folder / release / entry.name)
            if text is None:
                return f"{entry.name} is missing"
            found.append((entry.name, entry.options, sha256(text), sketches.get(entry.name)))
        return lock_file.compare(pinned, found)

    def _read(self, release: str) -> tuple[Past, ...]:
        found = git.touching(self.queue.folder, LIMIT)
        if found is None:
            return ()
        repository, inside, commits = found
        out: list[Past] = []
        locks: dict[str, Lock | None] = {}
        before = ""
        with git.Batch(repository) as batch:
            for back, commit in enumerate(commits):
                blob = batch.read(f"{commit}:{inside}{release}/series.lock")
                if blob is None or blob.id == before:
                    continue
                before = blob.id
                if blob.id not in locks:
                    locks[blob.id] = _parsed(blob.data, f"series.lock of {commit}")
                lock = locks[blob.id]
                if lock is not None:
                    out.append(Past(commit, back, lock))
        return tuple(out)


def _parsed(data: bytes, name: str) -> Lock | None:
    try:
        return lock_file.parse(data, name=name)
    except PatchqError:
        return None
