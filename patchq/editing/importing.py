"""import: patches from elsewhere come into the series, above what is on; nothing is applied.

On a release's series they are placed on the pristine files and the patches below, and
stored with exact places. A plain tree gets the file as it is, with ``-pN`` and ``-R`` in the
series, as with quilt. The words are quilt's. Nothing is written before all of it fits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from patchq.conversation import desk, view
from patchq.conversation.commit import Ground
from patchq.editing import basing, making, stock
from patchq.editing.shelf import Shelf
from patchq.errors import QuiltError, UsageError
from patchq.queue import editing, foreign, refitting
from patchq.queue.refitting import Wish
from patchq.queue.series import SeriesEntry
from patchq.report import Report
from patchq.transport.channel import Conversation


@dataclass(frozen=True, slots=True)
class Source:
    """A file as it was named (``-`` for stdin), where it is, and its bytes, None for no file."""

    name: str
    path: Path | None
    data: bytes | None


@dataclass(frozen=True, slots=True)
class How:
    """The options of `import`: the patch's name, whether and how it replaces one of that name."""

    wish: Wish
    name: str | None = None
    force: bool = False
    keep: str = ""


@dataclass(frozen=True, slots=True)
class _Came:
    """A patch that came in, and what is said of it."""

    name: str
    source: str
    notes: tuple[str, ...] = ()


def bring(
    aim: view.Aim, ground: Ground, sources: Sequence[Source], how: How
) -> Conversation[Report]:
    """Put the patches of some files into the series, above the top one that is on.

    Raises:
        PatchqError: a file has no patch, one does not fit, or is there already.
    """
    if how.name is not None and len(sources) > 1:
        raise QuiltError(
            "Option `-P' can only be used when importing a single patch",
            why=f"{len(sources)} files are named",
            mend="patchq import FILE...",
        )
    for source in sources:
        if source.data is None:
            raise QuiltError(
                f"Patch {source.name} does not exist",
                why="there is no such file",
                mend="patchq import FILE...",
            )
    at = yield from desk.sit(aim, ground, begins=True)
    release = basing.release(at)
    listed = making.listing(at, release)
    below = [one.patch for one in at.seen.applied]
    if [one.name for one in listed.entries][: len(below)] != below:
        raise making.out_of_order(at, [one.name for one in listed.entries])
    shelf = Shelf(at, release, listed, force=how.force, keep=how.keep)
    read: editing.Read | None = None
    notes: Sequence[str] = ()
    if at.seen.tree:
        came = _copied(shelf, sources, how)
    else:
        came, notes, read = yield from _placed(shelf, sources, how)
    done = _report(shelf, came, notes, ground.dry_run)
    if ground.dry_run:
        return done
    return replace(done, notes=(*done.notes, *editing.write(shelf.edit(), read)))


def _copied(shelf: Shelf, sources: Sequence[Source], how: How) -> list[_Came]:
    """Take files as they are, as quilt does."""
    came = []
    for source in sources:
        if how.name is None and source.path is None:
            raise UsageError(
                "the patch on stdin has no name",
                why="it is stored as it is, under the name that it is given",
                mend="patchq import -P NAME.patch -",
            )
        name = how.name or source.name.rpartition("/")[2]
        shelf.admit(name, source.path, f"patchq import -f {source.name}")
        strip = 1 if how.wish.strip is None else how.wish.strip
        assert source.data is not None
        shelf.put(SeriesEntry(name, strip, how.wish.reverse), source.data)
        came.append(_Came(name, source.name))
    return came


def _placed(
    shelf: Shelf, sources: Sequence[Source], how: How
) -> Conversation[tuple[list[_Came], tuple[str, ...], editing.Read]]:
    """Take patches as they go on the release and on what lies below them."""
    at = shelf.at
    notes: list[str] = []
    where = f"{at.seen.queue.distribution} {shelf.release}"
    given = [
        (source, foreign.read(source.data or b"", source=source.name, name=how.name))
        for source in sources
    ]
    shipped = yield from stock.shipped(at, shelf.release, [found for _, found in given])
    chosen = []
    for source, found in given:
        one = refitting.choose(found, shipped, how.wish, where=where)
        shipped = shipped.with_paths(one.paths)
        chosen.append((source, one))
        notes += one.notes
    paths = [path for _, one in chosen for path in one.paths]
    read = yield from basing.base(at, shelf.release, paths)
    came = []
    for source, one in chosen:
        for named, _ in one.meant:
            shelf.admit(named.name, source.path, one.command(" -f"))
        for patch in refitting.fit(one, lambda name: shelf.below(name, read)):
            shelf.put(SeriesEntry(patch.name), patch.text)
            came.append(_Came(patch.name, source.name, patch.notes))
    return came, tuple(notes), read


def _report(shelf: Shelf, came: Sequence[_Came], notes: Sequence[str], dry_run: bool) -> Report:
    """Return the outcome in quilt's words."""
    lines, said = [], list(notes)
    for one in came:
        if one.name in shelf.replaced:
            word = f"Replacing patch {one.name} with new version"
            said.append(word) if not dry_run else lines.append(f"Would replace patch {one.name}")
        else:
            new = editing.patch(shelf.release, one.name) in shelf.files
            word = f"patch {one.source} (stored as {one.name})" if new else f"patch {one.name}"
            lines.append(f"Would import {word}" if dry_run else f"Importing {word}")
        said += one.notes
    document = {
        "verb": "import",
        "queue": shelf.at.seen.queue.name,
        "release": shelf.release,
        "patches": [
            {
                "name": one.name,
                "source": one.source,
                "replaced": one.name in shelf.replaced,
                "notes": list(one.notes),
            }
            for one in came
        ],
    }
    return Report(tuple(lines), tuple(said), document)
