"""Pristine releases of one distribution, in a bare git repository.

One commit without parents per distinct text tree, with a fixed author and date,
so that its id is the same on every machine. ``refs/tags/<release>`` names it, one
tag per wheel (``0.20.1``, ``0.20.1-1``; several may name one commit).
``refs/wheels/<rest of the wheel's file name>`` keeps what the wheel said: a commit with
``wheel.json`` and the files of its dist-info. A release is there when its tag is;
the tag is written last, so that a fetch that is killed leaves nothing visible.

The tree holds *installed* paths, without the dist-info. Only `patchq.git` talks
to git, with an environment that no setting of the user's reaches.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from patchq import git
from patchq.releases import names, record, settling, trees
from patchq.releases.note import WheelNote
from patchq.releases.settling import StoreError as StoreError

_TAGS = "refs/tags/"
_WHEELS = "refs/wheels/"
_DISTRIBUTION = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")


def default_root() -> Path:
    """Return the folder in the user's cache where releases are kept."""
    import platformdirs

    return platformdirs.user_cache_path("patchq") / "releases"


def unwritable(root: Path, error: OSError) -> StoreError:
    """Return the error for a cache that cannot be written."""
    return StoreError(
        f"the store {root} cannot be written",
        why=str(error),
        mend="free space there, or name another cache: export XDG_CACHE_HOME=DIR",
    )


class Store:
    """The releases of one distribution that were fetched.

    Within ``with store:`` all reads share one git process; without, each call
    starts its own. Only `add` creates anything on disk.
    """

    def __init__(self, distribution: str, root: Path | None = None) -> None:
        if _DISTRIBUTION.fullmatch(distribution) is None:
            raise StoreError(
                f"no distribution can be called {distribution[:80]!r}",
                why="letters, digits and inner - _ . make a name (PEP 503)",
                mend="correct the name",
            )
        self.distribution = names.canonical(distribution)
        self.root = default_root() if root is None else root
        self.path = self.root / f"{self.distribution}.git"
        self._batch: git.Batch | None = None
        self._trees: dict[str, dict[str, tuple[int, str]]] = {}

    def __enter__(self) -> Store:
        self._batch = git.Batch(self.path)
        return self

    def __exit__(self, *_: object) -> None:
        batch, self._batch = self._batch, None
        if batch is not None:
            batch.__exit__()

    def releases(self) -> tuple[str, ...]:
        """Return every release that is here, oldest version first."""
        if not self.path.is_dir():
            return ()
        return tuple(sorted(git.references(self.path, _TAGS), key=names.order))

    def has(self, release: str) -> bool:
        """Return True if the release was fetched whole."""
        return self._find(release) is not None

    def tree(self, release: str) -> str:
        """Return the id of the release's tree; the same on every machine."""
        found = self._find(release)
        if found is not None:
            return found
        known = ", ".join(self.releases()) or "none"
        raise StoreError(
            f"{self.distribution} {release} was not fetched",
            why=f"the store {self.path} has {known}",
            mend=f"patchq fetch {self.distribution}=={release}",
        )

    def read(self, release: str, path: str) -> bytes | None:
        """Return the bytes of one file, None if the release has none at `path`."""
        found = self.read_many(release, (path,)).get(path)
        return None if found is None else found[0]

    def read_many(self, release: str, paths: Iterable[str]) -> dict[str, tuple[bytes, bool]]:
        """Return path -> (bytes, executable) of those paths that the release has."""
        tree = self.tree(release)
        files: dict[str, tuple[bytes, bool]] = {}
        with self._reading() as batch:
            for path in paths:
                mode, blob = self._entry(batch, tree, path)
                if mode & 0o170000 == 0o100000:
                    files[path] = (self._object(batch, blob).data, bool(mode & 0o100))
        return files

    def listing(self, release: str) -> Mapping[str, str]:
        """Return path -> blob id of every file of the release, in git's order."""
        tree = self.tree(release)
        with self._reading() as batch:
            return dict(self._walk(batch, tree))

    def wheels(self, release: str) -> tuple[WheelNote, ...]:
        """Return what is known of each wheel that gave this release."""
        if not self.path.is_dir():
            return ()
        stems = git.references(self.path, _WHEELS)
        with self._reading() as batch:
            notes = (self._note(batch, stem) for stem in sorted(stems))
            return tuple(note for note in notes if note and note.release == release)

    def note(self, filename: str) -> WheelNote | None:
        """Return what is known of the wheel of this name, None if it was never read."""
        if not self.path.is_dir():
            return None
        with self._reading() as batch:
            return self._note(batch, WheelNote.stem_of(filename))

    def dist_info(self, note: WheelNote) -> dict[str, bytes]:
        """Return path -> bytes of one wheel's dist-info: ``vllm-0.16.0.dist-info/METADATA`` ..."""
        with self._reading() as batch:
            top = self._object(batch, f"{_WHEELS}{note.stem}^{{tree}}")
            found = dict(self._walk(batch, top.id))
            del found["wheel.json"]
            return {path: self._object(batch, blob).data for path, blob in found.items()}

    def installed(self, release: str) -> frozenset[str]:
        """Return every path that the release's wheels install, what is not text too."""
        return frozenset(
            path
            for note in self.wheels(release)
            for name, data in self.dist_info(note).items()
            if name.endswith("/RECORD")
            for path in record.parse(data)
        )

    def add(
        self,
        note: WheelNote,
        files: Iterable[tuple[str, bytes, bool]],
        dist_info: Mapping[str, bytes],
    ) -> WheelNote:
        """Keep the text of a wheel; return `note` with the tree and the release it got.

        All or nothing, also with another process that adds at the same time. A
        wheel of another platform whose text differs gets a longer release name.
        Raises: `StoreError` if this wheel's file had another text before.
        """
        files = tuple(files)
        names.refuse(note, (path for path, _, _ in files))
        message = f"Pristine text of {self.distribution}\n"
        with self._locked():
            (text,) = git.commit(self.path, [git.Snapshot(files, message)])
            with git.Batch(self.path) as batch:
                tree = self._object(batch, f"{text}^{{tree}}").id
                note, known = self._settle(batch, replace(note, tree=tree))
            if known:
                git.point(self.path, _TAGS + note.release, text)
                return note
            members = [("wheel.json", note.to_json(), False)]
            members += [(path, data, False) for path, data in dist_info.items()]
            (kept,) = git.commit(self.path, [git.Snapshot(members, f"{note.filename}\n")])
            git.point(self.path, _WHEELS + note.stem, kept)
            git.point(self.path, _TAGS + note.release, text)
        return note

    def _settle(self, batch: git.Batch, note: WheelNote) -> tuple[WheelNote, bool]:
        """Return the note under the name that its text gets, and whether that is kept already."""
        before = self._note(batch, note.stem)
        named = batch.read(f"{_TAGS}{note.release}^{{tree}}")
        stems = git.references(self.path, _WHEELS)
        notes = (self._note(batch, stem) for stem in stems)
        same = [each for each in notes if each is not None and each.release == note.release]
        tree = None if named is None else named.id
        return settling.settle(note, before, tree, same, self.path)

    def _find(self, release: str) -> str | None:
        if not names.is_release(release) or not self.path.is_dir():
            return None
        with self._reading() as batch:
            found = batch.read(f"{_TAGS}{release}^{{tree}}")
        if found is None:
            return None
        self._trees[found.id] = trees.entries(found.data)
        return found.id

    def _entry(self, batch: git.Batch, tree: str, path: str) -> tuple[int, str]:
        """Return mode and id of what is at `path`, (0, "") for nothing."""
        mode, name = 0o040000, tree
        for part in path.split("/"):
            if mode != 0o040000:
                return 0, ""
            mode, name = self._children(batch, name).get(part, (0, ""))
        return mode, name

    def _walk(self, batch: git.Batch, tree: str) -> Iterator[tuple[str, str]]:
        """Yield path and id of every file, in git's order, however deep it lies."""
        levels = [("", iter(self._children(batch, tree).items()))]
        while levels:
            above, rest = levels[-1]
            name, (mode, child) = next(rest, ("", (0, "")))
            if not child:
                levels.pop()
            elif mode == 0o040000:
                below = iter(self._children(batch, child).items())
                levels.append((f"{above}{name}/", below))
            else:
                yield above + name, child

    def _children(self, batch: git.Batch, tree: str) -> dict[str, tuple[int, str]]:
        if tree not in self._trees:
            self._trees[tree] = trees.entries(self._object(batch, tree).data)
        return self._trees[tree]

    def _object(self, batch: git.Batch, name: str) -> git.GitObject:
        """Return an object that the store says it has."""
        found = batch.read(name)
        if found is None:
            raise StoreError(
                f"the store {self.path} is damaged",
                why=f"its object {name} is gone",
                mend=f"rm -r {self.path}, and fetch the releases again",
            )
        return found

    def _note(self, batch: git.Batch, stem: str) -> WheelNote | None:
        top = batch.read(f"{_WHEELS}{stem}^{{tree}}")
        if top is None:
            return None
        blob = trees.entries(top.data)["wheel.json"][1]
        return WheelNote.from_json(self._object(batch, blob).data)

    @contextmanager
    def _reading(self) -> Iterator[git.Batch]:
        if self._batch is not None:
            yield self._batch
        else:
            with git.Batch(self.path) as batch:
                yield batch

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Let one process add at a time; what a killed one left is cleared away."""
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            lock = (self.root / f"{self.distribution}.lock").open("a")
        except OSError as error:
            raise unwritable(self.root, error) from error
        with lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if self.path.is_dir():
                _clear(self.path)
            else:
                fresh = self.root / f"{self.distribution}.fresh"
                shutil.rmtree(fresh, ignore_errors=True)
                git.create(fresh)
                os.rename(fresh, self.path)
            yield


def _clear(repository: Path) -> None:
    """Remove what a killed git leaves; the caller holds the lock, so none of it is in use."""
    for pattern in ("fast_import_crash_*", "*.lock", "refs/**/*.lock", "objects/pack/tmp_*"):
        for leftover in repository.glob(pattern):
            leftover.unlink(missing_ok=True)
