"""Queues on disk: where they are, what they are called, what they hold.

A queue is a folder with a `queue.toml`, one folder per release with its `series`,
`series.lock` and patches, and `post/` with the sketches that all releases share::

    distribution = "vllm"                  # what pip installs; required
    summary = "what it is for"             # required
    owner = "Who <who@example.org>"
    upstream = ["https://..."]             # where upstream talks of it
    imports = ["package.module"]           # what push --check-import imports

    [patches.50-eagle-bare-language-model] # a patch's name without .patch
    for = "<0.16"                          # PEP 440: the releases that need it
    upstream = "https://..."               # the change that makes it needless

A key that is not in this list is an error. Version 1. `lock` and `verify` read no
patch: looking costs little. `load` reads them all.
"""

from __future__ import annotations

import importlib
import os
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from patchq.errors import PatchqError, UsageError
from patchq.model import Lock, Patch, Series, Sha256, sha256
from patchq.queue import lock as lock_file
from patchq.queue import reading, table
from patchq.queue import series as series_file

SETTINGS = "queue.toml"
SHARED = "post"


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue of patches for one distribution; `releases` have a series each, oldest first.

    `listing` is the name of a series' file, which only a plain tree has otherwise.
    """

    name: str
    folder: Path
    distribution: str
    summary: str
    owner: str = ""
    upstream: tuple[str, ...] = ()
    patches: Mapping[str, table.PatchNote] = field(default_factory=dict)
    releases: tuple[str, ...] = ()
    listing: str = "series"
    imports: tuple[str, ...] = ()

    def needs(self, stem: str, release: str) -> bool:
        """Return whether `release` needs the patch of that name (without ``.patch``)."""
        note = self.patches.get(stem)
        return note is None or note.needed(release)


def search(cwd: Path, environ: Mapping[str, str]) -> list[Path]:
    """Return the folders that may hold queues, nearest first.

    These are the nearest folder `queues` from `cwd` upwards, those of ``PATCHQ_QUEUES``
    (separated as in ``PATH``), and the ready-made ones that come with patchq.
    """
    folders = [at / "queues" for at in (cwd, *cwd.parents) if (at / "queues").is_dir()][:1]
    named = environ.get("PATCHQ_QUEUES", "").split(os.pathsep)
    folders += [cwd / name for name in named if name]
    folders += shipped()
    first: dict[Path, Path] = {}
    for folder in folders:
        first.setdefault(folder.resolve(), folder)
    return list(first.values())


def shipped() -> list[Path]:
    """Return the folders of the ready-made queues.

    A ``setup.py develop`` of an old pip does not map `patchq.queues`: there they
    are in the checkout, beside the package.
    """
    try:
        return [Path(folder) for folder in importlib.import_module("patchq.queues").__path__]
    except ModuleNotFoundError:
        return [Path(__file__).parents[2] / "queues"]


def is_shipped(queue: Queue) -> bool:
    """Return whether a queue is one of the ready-made ones that came with patchq."""
    place = queue.folder.resolve()
    return any(place.is_relative_to(folder.resolve()) for folder in shipped())


def tree(root: Path, patches: str = "patches", listing: str = "series") -> Queue:
    """Return the queue of a plain tree: quilt's folder `patches` in it, which may not be there.

    The folder stands where other queues have a release; `listing` is the series in it.
    """
    return Queue("patches", root, "tree", "", releases=(patches,), listing=listing)


def listing(queue: Queue, release: str) -> Path:
    """Return where the series of a release is."""
    return queue.folder / release / queue.listing


def queues(cwd: Path, environ: Mapping[str, str]) -> tuple[Queue, ...]:
    """Return all queues in sight; of two with one name the nearer."""
    found: dict[str, Queue] = {}
    for folder in search(cwd, environ):
        if not folder.is_dir():
            raise UsageError(
                f"{folder} is not a folder",
                why="PATCHQ_QUEUES names it",
                mend="set PATCHQ_QUEUES to folders that hold queues",
            )
        for settings in sorted(folder.glob(f"*/{SETTINGS}")):
            if settings.parent.name not in found:
                found[settings.parent.name] = open(settings.parent)
    return tuple(found.values())


def open(folder: Path) -> Queue:
    """Return the queue in `folder`, without reading a patch.

    Raises:
        UsageError: no queue.toml there, not TOML, a key that does not exist.
    """
    path = folder / SETTINGS
    text = reading.read(path)
    if text is None:
        raise UsageError(
            f"{folder} is not a queue",
            why=f"it has no {SETTINGS}",
            mend="patchq queues",
        )
    try:
        document = tomllib.loads(text.decode())
    except (ValueError, RecursionError) as error:  # not TOML, not UTF-8, too deep
        raise UsageError(
            f"{path} cannot be read", why=str(error), mend=f"correct {path}"
        ) from error
    settings = table.read(document, source=str(path))
    return Queue(
        folder.resolve().name,
        folder,
        settings.distribution,
        settings.summary,
        settings.owner,
        settings.upstream,
        settings.patches,
        _releases(folder),
        imports=settings.imports,
    )


def lock(queue: Queue, release: str) -> Lock | None:
    """Return a release's series.lock, None where none is written yet.

    Raises:
        LockError: it cannot be read, or is another queue's or release's.
    """
    path = queue.folder / release / "series.lock"
    data = reading.read(path)
    if data is None:
        return None
    found = _parsed(data, str(path))
    for what, has, expected in (
        ("release", found.release, release),
        ("distribution", found.distribution, queue.distribution),
    ):
        if has != expected:
            raise lock_file.LockError(
                f"{path} is not this series' lock",
                why=f"its {what} is {has!r}, expected {expected!r}",
                mend=f"patchq lint --write --queue {queue.folder}",
            )
    return found


@lru_cache(maxsize=64)
def _parsed(data: bytes, name: str) -> Lock:
    """Parse a lock once: most verbs ask for it more than once."""
    return lock_file.parse(data, name=name)


def series(queue: Queue, release: str) -> series_file.SeriesFile:
    """Return a release's series, without reading a patch.

    Raises:
        UsageError: the queue has no series for this release.
    """
    path = listing(queue, release)
    text = reading.read(path) if release in queue.releases else None
    if text is None:
        raise UsageError(
            f"queue {queue.name} has no series for {release}",
            why=f"it has series for {', '.join(queue.releases) or 'no release at all'}",
            mend=f"make {queue.folder}/{release}/series, and name the patches in it",
        )
    return series_file.parse(text, name=str(path))


def load(queue: Queue, release: str) -> Series:
    """Return a release's series with its patches and sketches, read whole.

    Raises:
        UsageError: the queue has no such series, or a patch of it is missing.
        PatchFormatError: a patch cannot be read.
    """
    patches = []
    for _, one in each(queue, release):
        if isinstance(one, PatchqError):
            raise one
        patches.append(one)
    return Series(release, tuple(patches), lock(queue, release))


def each(queue: Queue, release: str) -> Iterator[tuple[str, Patch | PatchqError]]:
    """Yield each name of a release's series, with its patch or why that cannot be read.

    Raises:
        UsageError: the queue has no such series.
    """
    from patchq.queue import patchfile  # it brings unidiff, which looking can do without

    for entry in series(queue, release).entries:
        try:
            sketch, name = _sketch(queue, release, entry.name)
            yield (
                entry.name,
                patchfile.load(
                    queue.folder / release / entry.name,
                    name=entry.name,
                    strip=entry.strip,
                    reverse=entry.reverse,
                    sketch=sketch,
                    sketch_name=name,
                ),
            )
        except PatchqError as error:
            yield entry.name, error


def verify(queue: Queue, release: str) -> str | None:
    """Return in what the files differ from series.lock, None for nothing; parses no patch."""
    from patchq.queue import patchfile

    pinned = lock(queue, release)
    if pinned is None:
        return "there is no series.lock"
    found: list[tuple[str, str, Sha256, Sha256 | None]] = []
    for entry in series(queue, release).entries:
        text = patchfile.read(queue.folder / release / entry.name, entry.name)
        sketch, _ = _sketch(queue, release, entry.name)
        digest = None if sketch is None else sha256(sketch)
        found.append((entry.name, entry.options, sha256(text), digest))
    return lock_file.compare(pinned, found)


def commit(queue: Queue) -> tuple[str | None, bool]:
    """Return the commit of the queue's own repository, and whether the queue has changes in it.

    ``(None, False)`` where the queue is in no repository; then git is not asked at all.
    """
    from patchq import git

    return git.head(queue.folder)


def _releases(folder: Path) -> tuple[str, ...]:
    """Return the folders of `folder` that hold a series, by PEP 440's order."""
    names = [path.parent.name for path in folder.glob("*/series") if path.is_file()]
    return tuple(sorted(names, key=table.order))


def _sketch(queue: Queue, release: str, patch: str) -> tuple[bytes | None, str]:
    """Return a patch's sketch and its name in the queue; the release's own replaces the shared."""
    stem = patch.removesuffix(".patch").removesuffix(".diff")
    for name in (f"{release}/{stem}.pyi", f"{SHARED}/{stem}.pyi"):
        text = reading.read(queue.folder / name)
        if text is not None:
            return text, name
    return None, ""
