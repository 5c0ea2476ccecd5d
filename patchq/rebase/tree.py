"""The files of a release with the patches that are on it so far."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from patchq.engine import apply, judge
from patchq.engine.apply import File
from patchq.engine.sketch import Sketch
from patchq.engine.verdict import Verdict
from patchq.errors import PatchqError
from patchq.model import FileDiff, Patch
from patchq.releases.store import Store


class Tree:
    """A pristine release, read from the store when asked, and what was changed above it."""

    def __init__(self, store: Store, release: str) -> None:
        self.store, self.release = store, release
        self._files: dict[str, File | None] = {}
        self._listing: Mapping[str, str] | None = None
        self._installed: frozenset[str] | None = None

    def file(self, path: str) -> File | None:
        """Return a file's bytes and whether it is executable, None where it is absent."""
        if path not in self._files:
            self._files[path] = self.store.read_many(self.release, (path,)).get(path)
        return self._files[path]

    def read(self, path: str) -> bytes | None:
        """Return a file's bytes, None where it is absent."""
        found = self.file(path)
        return None if found is None else found[0]

    def load(self, paths: Iterable[str]) -> None:
        """Read many files in one go."""
        wanted = [path for path in paths if path not in self._files]
        found = self.store.read_many(self.release, wanted)
        self._files.update((path, found.get(path)) for path in wanted)

    def take(self, after: Mapping[str, File | None]) -> None:
        """Put files in place of those that are there."""
        self._files.update(after)

    def put(self, patch: Patch) -> None:
        """Put a patch on.

        Raises:
            PatchqError: it does not apply.
        """
        self.take(self.put_aside(patch))

    def put_aside(self, patch: Patch) -> Mapping[str, File | None]:
        """Return the files that a patch would give; the tree stays as it is.

        Raises:
            PatchqError: it does not apply.
        """
        done = apply.apply_patch(patch, self.file)
        if isinstance(done, apply.PatchRejected):
            raise PatchqError(
                f"{patch.name} does not apply to {self.store.distribution} {self.release}",
                why=done.message,
                mend=f"patchq lint --release {self.release}",
            )
        return done.after

    def judge(
        self, after: Mapping[str, File | None], sketch: Sketch | None, diffs: Sequence[FileDiff]
    ) -> Verdict:
        """Return what is found of files, were they in place of those that are there."""
        return judge.judge(
            {path: self.read(path) for path in after},
            {path: file and file[0] for path, file in after.items()},
            sketch,
            self.release,
            self.read,
            diffs=diffs,
            listing=self.installed,
        )

    @property
    def listing(self) -> Mapping[str, str]:
        """Path -> blob id of every text file of the pristine release."""
        if self._listing is None:
            self._listing = self.store.listing(self.release)
        return self._listing

    @property
    def installed(self) -> frozenset[str]:
        """Every path that the release installs."""
        if self._installed is None:
            self._installed = self.store.installed(self.release)
        return self._installed
