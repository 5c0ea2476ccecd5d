"""Sketches that belong to no patch: a name mistyped, or a patch that is gone."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass

from patchq.queue import store


@dataclass(frozen=True, slots=True)
class Orphan:
    """A sketch's name in the queue, and the stem of the patch whose name is nearest."""

    name: str
    nearest: str
    where: str

    def __str__(self) -> str:
        """Return what is wrong with it."""
        hint = f"; there is a patch {self.nearest}" if self.nearest else ""
        return f"it belongs to no patch of {self.where}{hint}"

    def mend(self, folder: str) -> str:
        """Return what to type."""
        path = f"{folder}/{self.name}"
        to = self.name.rpartition("/")[0]
        return f"mv {path} {folder}/{to}/{self.nearest}.pyi" if self.nearest else f"rm {path}"


def orphans(queue: store.Queue) -> Iterator[Orphan]:
    """Yield the sketches that no patch has: the shared ones, then each release's own.

    A shared one is a patch's of any series, a release's own one of that series.
    """
    stems = {
        release: [_stem(entry.name) for entry in store.series(queue, release).entries]
        for release in queue.releases
    }
    every = list(dict.fromkeys(stem for some in stems.values() for stem in some))
    for folder, known in ((store.SHARED, every), *stems.items()):
        where = "any series" if folder == store.SHARED else f"the series for {folder}"
        shared = {path.stem for path in (queue.folder / folder).glob("*.pyi")}
        for stem in sorted(shared - set(known)):
            free = [one for one in known if one not in shared]
            close = difflib.get_close_matches(stem, free, 1) or difflib.get_close_matches(
                stem, known, 1
            )
            yield Orphan(f"{folder}/{stem}.pyi", close[0] if close else "", where)


def _stem(name: str) -> str:
    return name.removesuffix(".patch").removesuffix(".diff")
