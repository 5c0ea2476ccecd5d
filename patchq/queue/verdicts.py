"""The verdict cache: what was judged once is not judged again.

One small JSON file per verdict in a folder of the user's cache. Its name is a
digest of all that decides the verdict (`key`), so a file is right or not there;
nothing here is ever out of date, and the folder may be removed at any time.
What a verdict says is the engine's: here it is a document.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from patchq import cachefile
from patchq.model import LockedPatch

# Raise it with every change of what `patchq.engine` finds right or wrong.
RULES = 5


def key(
    *,
    before: Iterable[object],
    after: Iterable[object],
    reads: Mapping[str, str | None],
    sketch: str | None,
    release: str,
    python: str,
) -> str:
    """Return the name of a verdict: a digest of everything that decides it.

    `before` and `after` are rows of path, kind, mode and digest; `reads` are the
    untouched files that were consulted, by digest; `python` is ``x.y``. The rules
    and libcst count by their versions.
    """
    decides = [list(before), list(after), sorted(reads.items()), sketch, release, python]
    document = json.dumps([*decides, RULES, _libcst()], separators=(",", ":"))
    return hashlib.sha256(document.encode()).hexdigest()


def of(pinned: LockedPatch, release: str) -> str:
    """Return the name of a locked patch's verdict: all that decides it is in the lock."""
    return key(
        before=[(change.path, *change.before.to_json()) for change in pinned.changes],
        after=[(change.path, *change.after.to_json()) for change in pinned.changes],
        reads=pinned.reads,
        sketch=pinned.sketch,
        release=release,
        python=f"{sys.version_info[0]}.{sys.version_info[1]}",
    )


class VerdictCache:
    """Verdicts in one folder, which is made when the first is kept."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def get(self, name: str) -> dict[str, object] | None:
        """Return a verdict, None if there is none or its file is damaged."""
        try:
            value = json.loads((self.folder / f"{name}.json").read_bytes())
        except (OSError, ValueError):
            return None
        return value if isinstance(value, dict) else None

    def put(self, name: str, value: Mapping[str, object]) -> None:
        """Keep a verdict; a reader sees all of it or nothing.

        A cache that cannot be written is no failure: the verdict is judged again.
        """
        data = json.dumps(value, separators=(",", ":")).encode()
        cachefile.keep(self.folder / f"{name}.json", data)


@cache
def _libcst() -> str:
    """Return libcst's version by its dist-info's name: importlib.metadata takes 15 ms."""
    found = importlib.util.find_spec("libcst")
    assert found is not None, "libcst is required to be installed"
    infos = Path(str(found.origin)).parents[1].glob("libcst-*.dist-info")
    return ",".join(sorted(info.name for info in infos))
