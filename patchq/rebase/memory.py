"""Resolutions that are remembered, as git rerere does, and offered where a conflict recurs.

A folder per conflict, named by a digest of its sides::

    <id>/preimage     the file with its conflicts, diff3 markers with fixed labels
    <id>/postimage    the file as it was resolved

Where the same conflict comes again, in whatever surroundings, what led from preimage
to postimage is merged into the new file.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from patchq.engine import merge
from patchq.engine.merge import Merged
from patchq.queue import writing

_LABELS = ("ours", "base", "theirs")
MARKERS = re.compile(rb"^(?:<{7}|\|{7}|>{7})(?: |\r?$)|^={7}\r?$", re.MULTILINE)


class Memory:
    """The remembered resolutions of one distribution."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def remember(self, merged: Merged, resolved: bytes) -> None:
        """Keep how the conflicts of a merge were resolved; nothing where it had none."""
        if not merged.conflicts:
            return
        place = self.folder / _id(merged)
        place.mkdir(parents=True, exist_ok=True)
        for name, data in (("preimage", merged.render(_LABELS)), ("postimage", resolved)):
            writing.write(place / name, data)

    def recall(self, merged: Merged) -> bytes | None:
        """Return the file as it was resolved before; None where it was not, or not so."""
        place = self.folder / _id(merged)
        try:
            before, after = ((place / name).read_bytes() for name in ("preimage", "postimage"))
        except OSError:
            return None
        text = merge.merge(before, merged.render(_LABELS), after).text
        return None if text is None or MARKERS.search(text) else text


def _id(merged: Merged) -> str:
    digest = hashlib.sha256()
    for region in merged.conflicts:
        for side in (region.base, region.ours, region.theirs):
            digest.update(b"%d\0" % len(side) + b"".join(side))
    return digest.hexdigest()
