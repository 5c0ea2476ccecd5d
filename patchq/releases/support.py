"""Which releases a queue supports, patch by patch, and why not others.

What can be known: the folders of the queue, the `for` of its queue.toml, and for
every other release that was fetched, what the sketches say of its pristine text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from patchq.engine import sketch
from patchq.engine.upstream import Upstream
from patchq.queue import sketches, store
from patchq.queue.store import Queue
from patchq.releases import names
from patchq.releases.store import Store


@dataclass(frozen=True, slots=True)
class Supported:
    """A patch, by its name without ``.patch``, and the releases whose series has it.

    `missing` are those that have a series without it, although queue.toml's `needed`
    (a specifier, "" for every release) does not leave them out.
    """

    patch: str
    releases: tuple[str, ...]
    needed: str
    missing: tuple[str, ...]

    def to_json(self) -> dict[str, object]:
        """Return it as ``--json`` shows it."""
        return {
            "patch": self.patch,
            "releases": list(self.releases),
            "for": self.needed,
            "missing": list(self.missing),
        }


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """A fetched release without a series: since when upstream has each patch, None for not."""

    release: str
    patches: Mapping[str, Upstream | None]

    @property
    def needless(self) -> bool:
        """True where upstream has all that the queue is for."""
        return all(self.patches.values())

    def to_json(self) -> dict[str, object]:
        """Return it as ``--json`` shows it."""
        found = {name: one and one.to_json() for name, one in self.patches.items()}
        return {"release": self.release, "needless": self.needless, "patches": found}


def supported(queue: Queue) -> tuple[Supported, ...]:
    """Return every patch of the queue, in the order of the series; reads no patch."""
    series = {
        release: [_stem(entry.name) for entry in store.series(queue, release).entries]
        for release in queue.releases
    }
    found = []
    for stem in sorted(dict.fromkeys(stem for stems in series.values() for stem in stems)):
        having = tuple(release for release, stems in series.items() if stem in stems)
        note = queue.patches.get(stem)
        missing = (one for one in series if one not in having and queue.needs(stem, one))
        found.append(Supported(stem, having, note.releases if note else "", tuple(missing)))
    return tuple(found)


def elsewhere(queue: Queue, cache: Path) -> Iterator[Elsewhere]:
    """Yield every release that was fetched and has no series, oldest first.

    Its pristine text is judged by the shared sketches of the patches that it may need;
    a patch without a sketch, or whose sketch asks nothing there, proves nothing. What
    was judged once is kept in `cache`.
    """
    from patchq.releases import since

    texts = sketches.load(queue, None)
    parsed = {stem: sketch.load(text, name=name) for stem, (name, text) in texts.items()}
    with Store(queue.distribution, cache / "releases") as kept:
        for release in kept.releases():
            version = names.version(release)
            if version is None or release in queue.releases:
                continue
            found = {
                stem: since.since(one, texts[stem][1], release, kept, cache)
                for stem, one in parsed.items()
                if queue.needs(stem, version)
            }
            if found:
                yield Elsewhere(release, found)


def _stem(name: str) -> str:
    return name.removesuffix(".patch").removesuffix(".diff")
