"""What is exported, and what an edited branch is held against: a series on its pristine files."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from patchq.engine import apply
from patchq.engine.apply import File
from patchq.errors import ConflictError, UsageError
from patchq.exchange import messages
from patchq.exchange.messages import Message
from patchq.model import Patch
from patchq.queue import store
from patchq.releases.store import Store

Tree = dict[str, "File | None"]


@dataclass(frozen=True, slots=True)
class Base:
    """Where the pristine files are: all of a plain tree's, or a release in the store.

    `repository` and `reference` name the release's commit there; `files` are a tree's.
    """

    repository: Path | None = None
    reference: str = ""
    files: Callable[[], Iterable[tuple[str, bytes, bool]]] = tuple


@dataclass(frozen=True, slots=True)
class Source:
    """A series with its patches, read; `read` gives the pristine files that they change.

    `search`: hunks may have moved, as on a plain tree.
    """

    queue: store.Queue
    release: str
    title: str
    patches: tuple[Patch, ...]
    read: Callable[[str], File | None]
    base: Base
    search: bool = False

    @property
    def branch(self) -> str:
        """The branch that is this series in a git repository."""
        names = [self.title] if self.search else [self.queue.name, self.release]
        return "/".join(["patchq", *map(_word, names)])

    def message(self, patch: Patch) -> Message:
        """Return what a patch's header says; the queue's owner made it where nobody else did."""
        found = messages.of(patch.header, patch.stem)
        owner = self.queue.owner if "@" in self.queue.owner else ""
        return replace(found, author=found.author or owner)

    def steps(self) -> Iterator[tuple[Patch, Tree, Tree]]:
        """Yield each patch with its files before and after.

        Raises:
            ConflictError: one does not fit.
        """
        tree: Tree = {}
        for patch in self.patches:
            result = apply.apply_patch(
                patch,
                lambda path: tree[path] if path in tree else self.read(path),
                search=self.search,
            )
            if isinstance(result, apply.PatchRejected):
                raise ConflictError(
                    f"Patch {patch.name} does not fit on {self.title} with those below it",
                    why=result.message,
                    mend=f"patchq lint --queue {self.queue.folder}   # says which lines",
                )
            paths = [change.path for change in result.changes]
            before = {path: tree.get(path, self.read(path)) for path in paths}
            after = {path: result.after.get(path, before[path]) for path in paths}
            yield patch, before, after
            tree.update(after)


def _word(name: str) -> str:
    """Return a name as a part of a branch's: git-check-ref-format(1) allows few signs.

    Example:
        >>> _word("a b~.lock"), _word("..x")
        ('a-b--lock', '-x')
    """
    return re.sub(r"[^A-Za-z0-9._+-]+|^[.-]+|\.\.+|\.(?=lock$|$)", "-", name)


def of_queue(queue: store.Queue, release: str | None, cache: Path) -> Source:
    """Return a release's series of a queue, the newest one's for None.

    Raises:
        UsageError: the queue has no such series.
        StoreError: the release's text is not here.
        PatchqError: a patch can not be read.
    """
    if not queue.releases or (release is not None and release not in queue.releases):
        raise UsageError(
            f"queue {queue.name} has no series for {release or 'any release'}",
            why=f"it has {', '.join(queue.releases) or 'none'}",
            mend="patchq queues",
        )
    named = release or queue.releases[-1]
    whole = store.load(queue, named)
    kept = Store(queue.distribution, cache / "releases")
    kept.tree(named)
    paths = {path for patch in whole.patches for path in patch.paths}
    found: Tree = {}
    found.update(kept.read_many(named, paths))

    def read(path: str) -> File | None:
        if path not in found:
            found[path] = kept.read_many(named, (path,)).get(path)
        return found[path]

    base = Base(kept.path, f"refs/tags/{named}")
    return Source(queue, named, f"{queue.name} {named}", whole.patches, read, base)
