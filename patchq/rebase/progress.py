"""A rebase in progress, on disk: nothing is in the queue before its end.

A folder per queue, below the user's state folder::

    rebase.json       what was asked, what is done, where it waits; written last, whole
    done/<patch>      the new patch files so far
    work/<path>       the files of the patch where it waits, conflicts marked
    CONFLICT.txt      what each side did, and what to type

Killed at any time it goes on from the last whole rebase.json.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import itertools
import json
import os
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from patchq.engine.apply import File
from patchq.errors import ConflictError, PatchqError, UsageError
from patchq.model import safe_path
from patchq.queue import writing
from patchq.rebase.files import FileMerge
from patchq.rebase.step import Step

SCHEMA = 1
PAGE = "CONFLICT.txt"
_STATE = "rebase.json"
_LEFT_OVERS = ("~", ".orig", ".rej", ".bak", ".pyc")


@dataclass(frozen=True, slots=True)
class Waiting:
    """The patch that waits for a person, and its files: (path, origin, source) each."""

    step: Step
    files: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True, slots=True)
class Progress:
    """What was asked, and how far it is; `digest` is of the old series.

    `options`: of each carried patch its options in the series.
    """

    queue: str
    source: str
    onto: str
    digest: str
    steps: tuple[Step, ...] = ()
    options: dict[str, str] = field(default_factory=dict)
    waiting: Waiting | None = None

    def to_json(self) -> dict[str, object]:
        """Return the document of rebase.json."""
        waiting = self.waiting and {
            "step": self.waiting.step.to_json(),
            "files": [list(names) for names in self.waiting.files],
        }
        return {
            "schema": SCHEMA,
            "queue": self.queue,
            "from": self.source,
            "onto": self.onto,
            "digest": self.digest,
            "steps": [step.to_json() for step in self.steps],
            "options": self.options,
            "waiting": waiting,
        }


class Folder:
    """The folder of one queue's rebase."""

    def __init__(self, root: Path, queue: Path) -> None:
        name = hashlib.sha256(os.fsencode(queue.resolve())).hexdigest()[:12]
        self.path = root / "rebase" / f"{queue.resolve().name}-{name}"
        self.work = self.path / "work"

    @property
    def there(self) -> bool:
        """True where a rebase is in progress, whether or not its state can be read."""
        return (self.path / _STATE).is_file()

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Keep other processes out of this queue's rebase.

        Raises:
            UsageError: one is at it.
            PatchqError: the state folder cannot be written.
        """
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            held = self.path.with_name(f"{self.path.name}.lock").open("a")
        except OSError as error:
            raise PatchqError(
                f"{self.path.parent} cannot be written",
                why=f"{error.strerror}; a rebase keeps its progress there",
                mend="export PATCHQ_STATE=DIR, a folder that can be written",
            ) from error
        with held as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise UsageError(
                    "another patchq is at work on this rebase",
                    why=f"it holds {lock.name}",
                    mend="patchq rebase --continue, when it has ended",
                ) from error
            yield

    def load(self) -> Progress | None:
        """Return the rebase in progress, None where there is none.

        Raises:
            PatchqError: rebase.json cannot be read.
        """
        try:
            data = (self.path / _STATE).read_bytes()
        except FileNotFoundError:
            return None
        try:
            return _parsed(json.loads(data))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise PatchqError(
                f"{self.path / _STATE} cannot be read",
                why=f"{type(error).__name__}: {error}",
                mend="patchq rebase --abort",
            ) from error

    def save(self, progress: Progress) -> None:
        """Put rebase.json in place, whole and durably."""
        self.path.mkdir(parents=True, exist_ok=True)
        data = json.dumps(progress.to_json(), indent=1).encode()
        writing.write(self.path / _STATE, data)

    def keep(self, name: str, text: bytes) -> None:
        """Keep a new patch file."""
        path = self.path / "done" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        writing.write(path, text)

    def kept(self, name: str) -> bytes:
        """Return a new patch file that was kept."""
        try:
            return (self.path / "done" / name).read_bytes()
        except OSError as error:
            raise damaged(self.path, f"done/{name}: {error.strerror}") from error

    def lay_out(self, merged: Iterable[FileMerge], page: str) -> None:
        """Make the work tree of a conflict, and its page."""
        shutil.rmtree(self.work, ignore_errors=True)
        self.work.mkdir(parents=True)
        for one in merged:
            if one.file is not None:
                path = self.work / one.path
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(one.file[0])
                path.chmod(0o755 if one.file[1] else 0o644)
        writing.write(self.path / PAGE, page.encode(errors="surrogateescape"))

    def resolved(self, path: str) -> File | None:
        """Return a file of the work tree as it is now; one that was removed is absent.

        Raises:
            ConflictError: a link, a folder or the like is in its place.
        """
        place = self.work / path
        if place.is_symlink() or (place.exists() and not place.is_file()):
            raise ConflictError(
                f"{path} is no plain file in the work tree",
                why=f"{place} is a link, a folder or the like",
                mend="put the file there that the patch should give",
            )
        try:
            return place.read_bytes(), os.access(place, os.X_OK)
        except (FileNotFoundError, NotADirectoryError):
            return None

    def added(self, known: Iterable[str]) -> Iterator[str]:
        """Yield the other files of the work tree, without what editors and Python leave."""
        seen = set(known)
        for place in sorted(self.work.rglob("*")):
            path = place.relative_to(self.work).as_posix()
            left = place.name.startswith(".") or place.name.endswith(_LEFT_OVERS)
            if path not in seen and not left and not place.is_dir() and "__pycache__" not in path:
                yield safe_path(path, source=str(self.work))

    def remove(self) -> None:
        """Forget the rebase: rebase.json goes first."""
        with contextlib.suppress(FileNotFoundError):
            (self.path / _STATE).unlink()
        shutil.rmtree(self.path, ignore_errors=True)

    def set_aside(self) -> Path:
        """Forget the rebase but for its work tree; return where that is, out of the next's way."""
        names = (self.path.with_name(f"{self.path.name}.left-{n}") for n in itertools.count(1))
        kept = next(path for path in names if not path.exists())
        os.rename(self.path, kept)
        with contextlib.suppress(FileNotFoundError):
            (kept / _STATE).unlink()
        return kept / self.work.name


def damaged(folder: Path, why: str) -> PatchqError:
    """Return the error for a state that was changed by another hand."""
    said = f"what {folder} says of the rebase does not fit"
    return PatchqError(said, why=why, mend="patchq rebase --abort, and begin again")


def none(queue: Path) -> UsageError:
    """Return the error for a verb that needs a rebase in progress."""
    return UsageError(
        f"no rebase of {queue} is in progress",
        why="it was finished, aborted, or never begun",
        mend="patchq rebase --onto RELEASE",
    )


def sync(folder: Path) -> None:
    """Make the names in a folder durable."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _parsed(document: dict[str, object]) -> Progress:
    if document["schema"] != SCHEMA:
        raise ValueError(f"its schema is {document['schema']!r}; this patchq knows {SCHEMA}")
    steps, options, waits = document["steps"], document["options"], document["waiting"]
    if not isinstance(steps, list) or not isinstance(options, dict):
        raise TypeError("steps and options are of the wrong kind")
    queue, source, onto, digest = map(str, map(document.get, ("queue", "from", "onto", "digest")))
    done = tuple(map(Step.from_json, steps))
    for step in done:
        safe_path(step.name, source=_STATE)
    progress = Progress(queue, source, onto, digest, done, dict(options))
    if not isinstance(waits, dict):
        return progress
    names = tuple((str(a), str(b), str(c)) for a, b, c in waits["files"])
    for path, *_ in names:
        safe_path(path, source=_STATE)
    return replace(progress, waiting=Waiting(Step.from_json(waits["step"]), names))
