"""Since when upstream has what a sketch asks, by the releases that were fetched (R15)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from patchq.engine import upstream
from patchq.engine.sketch import Sketch
from patchq.engine.upstream import Upstream
from patchq.model import sha256
from patchq.queue import verdicts
from patchq.releases import names
from patchq.releases.store import Store


def since(
    sketch: Sketch,
    text: bytes,
    release: str,
    store: Store,
    cache: Path,
    *,
    live: Callable[[str], bytes | None] | None = None,
) -> Upstream | None:
    """Return since when upstream has what `sketch` asks, as `release` sees it.

    Judged are the releases in the store up to that one; `text` is the sketch's, `cache`
    keeps what was found. `live` reads the release's pristine text where the store lacks it.
    """

    def found() -> Iterator[tuple[str, bool | None]]:
        mine = names.order(release)
        for known in store.releases():
            if names.version(known) and names.order(known) <= mine:
                yield known, _held(sketch, text, known, store, cache)
        if live is not None and not store.has(release):
            yield release, upstream.holds(sketch, release, live)

    return upstream.upstream(found())


def _held(sketch: Sketch, text: bytes, release: str, store: Store, cache: Path) -> bool | None:
    version = names.version(release)
    assert version is not None, release
    kept = verdicts.VerdictCache(cache / "verdicts")
    name = verdicts.key(
        before=[("pristine", store.tree(release))],
        after=[],
        reads={},
        sketch=sha256(text),
        release=release,
        python=f"{sys.version_info[0]}.{sys.version_info[1]}",
    )
    value = kept.get(name)
    if value is None or value.get("pristine") not in (True, False, None):
        value = {"pristine": upstream.holds(sketch, version, partial(store.read, release))}
        kept.put(name, value)
    held = value.get("pristine")
    return held if isinstance(held, bool) else None
