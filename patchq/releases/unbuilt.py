"""A release of which the index has only a source distribution: read, and never built."""

from __future__ import annotations

from patchq.releases import reading, sdist
from patchq.releases.note import WheelNote
from patchq.releases.pages import Candidate
from patchq.releases.store import Store


def keep(reader: reading.Reader, candidate: Candidate) -> tuple[WheelNote, tuple[str, ...]]:
    """Read a source distribution whole and keep what a build would install of it.

    Raises: `sdist.SdistError`; `reading.wheel.WheelError` where it is not the index's.
    """
    notes: tuple[str, ...] = ()
    with reading.whole(reader, candidate) as file:
        size = file.seek(0, 2)
        if reading.verify(file, candidate) != "wheel":
            notes = ("nobody gives its sha256: it was not checked",)
        text = sdist.read(file, candidate)
    note = WheelNote(candidate.filename, candidate.release, "", "sdist", size, candidate.sha256)
    store = Store(candidate.distribution, reader.root)
    return store.add(note, text.files, text.dist_info), notes
