"""`patchq forecast`: what a rebase onto each of many releases would say; nothing is touched.

Each release is a column of its own, judged from the nearest older series in a process
beside others. What decides a column names it in the cache: asked again, it is read.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from patchq.errors import PatchqError
from patchq.queue import store as queues
from patchq.queue import verdicts
from patchq.rebase import beginning, road
from patchq.rebase.beginning import Places
from patchq.rebase.step import Step
from patchq.releases import fetch, names
from patchq.releases.store import Store

# Wheels that are read at a time; the index is another's machine.
_AT_A_TIME = 4


@dataclass(frozen=True, slots=True)
class Column:
    """One release: a step for each patch of the series `source`, or why there is none."""

    release: str
    source: str
    steps: tuple[Step, ...]
    failed: str = ""

    def to_json(self) -> dict[str, object]:
        """Return the column as ``--json`` shows it and the cache keeps it."""
        return {
            "release": self.release,
            "from": self.source,
            "steps": [step.to_json() for step in self.steps],
            "failed": self.failed or None,
        }


def forecast(places: Places, releases: Iterable[str]) -> Iterator[Column]:
    """Yield a column for each release, in their order; those not here are fetched first."""
    wanted = tuple(releases)
    with (
        ThreadPoolExecutor(_AT_A_TIME) as readers,
        ProcessPoolExecutor(os.cpu_count()) as judges,
    ):
        fetched = [readers.submit(_fetched, places, release) for release in wanted]
        # R15 looks at every release that is here: all are, before the first is judged.
        failed = {release: done.result() for release, done in zip(wanted, fetched, strict=True)}
        columns: list[Column | Future[Column]] = []
        for release in wanted:
            columns.append(
                Column(release, "", (), failed[release])
                if failed[release]
                else judges.submit(
                    column, places.queue.folder, places.cache, places.state, release
                )
            )
        for one in columns:
            yield one if isinstance(one, Column) else one.result()


def _fetched(places: Places, release: str) -> str:
    """Fetch a release that is not here; return why that failed, "" where it is here."""
    root = places.cache / "releases"
    if Store(places.queue.distribution, root).has(release):
        return ""
    try:
        fetch.fetch(f"{places.queue.distribution}=={release}", cache=root)
    except PatchqError as error:
        return f"{error.what}: {error.why}"
    return ""


def column(folder: Path, cache: Path, state: Path, release: str) -> Column:
    """Return one release's column, from the cache where all that decides it is the same."""
    places = Places(queues.open(folder), cache, state)
    queue = places.queue
    source = release if release in queue.releases else beginning.nearest(queue, release)
    kept = verdicts.VerdictCache(cache / "forecast")
    name = _name(places, source, release)
    known = kept.get(name)
    if known is not None:
        try:
            steps = known["steps"]
            assert isinstance(steps, list)
            return Column(release, source, tuple(map(Step.from_json, steps)))
        except (KeyError, TypeError, ValueError, AssertionError):
            pass  # not as this patchq writes it: judged anew
    try:
        asked = beginning.asked(queue, source, release)
        with road.walking(places, asked) as walk:
            found = Column(release, source, tuple(walk.go(dry=True)))
    except PatchqError as error:
        return Column(release, source, (), f"{error.what}: {error.why}")
    kept.put(name, found.to_json())
    return found


def _name(places: Places, source: str, release: str) -> str:
    """Return a digest of all that decides a column."""
    queue = places.queue
    digest = hashlib.sha256()
    with Store(queue.distribution, places.cache / "releases") as store:
        here = [one for one in store.releases() if names.order(one) <= names.order(release)]
        trees = [store.tree(one) for one in dict.fromkeys((source, release, *here))]
    sketches = [
        [patch.name, patch.sketch_name, (patch.sketch or b"").decode(errors="surrogateescape")]
        for patch in queues.load(queue, source).patches
    ]
    needs = [queue.needs(name.rpartition(".")[0], release) for name, *_ in sketches]
    memory = sorted(path.name for path in places.memory.folder.glob("*"))
    rules = [beginning.digest(queue, source), release, here, trees, sketches, needs, memory]
    versions = verdicts.key(before=[], after=[], reads={}, sketch=None, release=release, python="")
    digest.update(json.dumps([*rules, versions]).encode(errors="surrogateescape"))
    return digest.hexdigest()
