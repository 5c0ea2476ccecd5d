"""How the bytes of one wheel get here: by ranges, from a local file, or whole.

By ranges where the server can; else, or with `full`, the wheel whole, into a file
without a name that vanishes with the process. RECORD proves that the files belong
together, not where they come from: `verified` is "record" then, and "wheel" where the
whole wheel equals the digest that the index gave.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from patchq.releases import pages, ranges, wheel
from patchq.releases.index import Session
from patchq.releases.pages import Candidate
from patchq.releases.store import unwritable

Progress = Callable[[int, int | None], None]


@dataclass(frozen=True, slots=True)
class Reader:
    """How wheels are read in one call of `fetch`."""

    session: Session
    root: Path
    full: bool
    progress: Progress


@dataclass(frozen=True, slots=True)
class Read:
    """One wheel as it was read."""

    text: wheel.WheelText
    size: int
    verified: str
    ranged: bool
    notes: tuple[str, ...]


def read(reader: Reader, candidate: Candidate) -> Read:
    """Return one wheel's text, by ranges if it may and can be."""
    notes: tuple[str, ...] = ()
    path = candidate.local
    if path is None and not reader.full:
        try:
            with ranges.RemoteFile(reader.session, locate(reader.session, candidate)) as file:
                text = wheel.read(file, candidate.filename, candidate.distribution)
                return Read(text, file.size, "record", True, text.notes)
        except ranges.NoRangesError:
            notes = ("the server sends no ranges: the whole wheel was downloaded",)
    with whole(reader, candidate) as file:
        size = file.seek(0, 2)
        verified = "record"
        if path is None or reader.full:
            verified = verify(file, candidate)
            if verified == "record":
                notes += ("the index gives no sha256: the wheel was checked by its RECORD only",)
        text = wheel.read(file, candidate.filename, candidate.distribution)
    return Read(text, size, verified, False, (*notes, *text.notes))


def locate(session: Session, candidate: Candidate) -> Callable[[], str]:
    """Return a function that gives the wheel's URL: first as found, then as its page has it."""
    urls = iter((candidate.url,))

    def found() -> str:
        for url in urls:
            return url
        if candidate.page is None:
            return candidate.url
        fresh = pages.read(session, candidate.page, candidate.distribution)
        same = (each.url for each in fresh if each.filename == candidate.filename)
        return next(same, candidate.url)

    return found


@contextmanager
def whole(reader: Reader, candidate: Candidate) -> Iterator[IO[bytes]]:
    """Open the whole wheel: the local file, or a download without a name."""
    if candidate.local is not None:
        with candidate.local.open("rb") as file:
            yield file
        return
    with _nameless(reader.root) as file:
        try:
            ranges.download(reader.session, candidate.url, file, reader.progress)
        except OSError as error:
            raise unwritable(reader.root, error) from error
        yield file


def _nameless(root: Path) -> IO[bytes]:
    try:
        root.mkdir(parents=True, exist_ok=True)
        return tempfile.TemporaryFile(dir=root)
    except OSError as error:
        raise unwritable(root, error) from error


def verify(file: IO[bytes], candidate: Candidate) -> str:
    """Return "wheel" if the index's digest fits, "record" if it gave none."""
    if candidate.sha256 is None:
        return "record"
    file.seek(0)
    digest = hashlib.sha256()
    for chunk in iter(lambda: file.read(1 << 20), b""):
        digest.update(chunk)
    found = digest.hexdigest()
    if found == candidate.sha256:
        return "wheel"
    raise wheel.WheelError(
        f"{candidate.filename} is refused",
        why=f"its sha256 is {found}, the index says {candidate.sha256}",
        mend="get the wheel from another index",
    )
