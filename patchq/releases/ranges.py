"""A file on a server, read by single HTTP ranges as if it were open here.

The rules: the first request is ``GET`` with ``bytes=0-0`` (no HEAD: signed links
refuse it; no suffix range, never two ranges at once: servers answer those with the
whole file); the total comes from Content-Range; every later request carries
If-Range; a file that changed meanwhile is read anew by the caller (`ChangedError`); a 403
later on means that a signed link expired, so it is looked up again.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable
from typing import IO

from patchq.releases.index import (
    Answer,
    ForbiddenError,
    ReadError,
    Session,
    UnreachableError,
    shown,
)

# Bytes between two wanted stretches that cost less than another request does.
GAP = 1 << 18
# What is read first of a wheel's end: directory and RECORD of all but huge ones.
TAIL = 3 << 17
# A file up to this size is read in one request.
SMALL = 1 << 20

# More than this is never read at once: a directory that says so is not a wheel's.
_MOST = 1 << 26

_LENGTH = re.compile("[0-9]{1,18}")
_RANGE = re.compile(r"bytes ([0-9]{1,18})-([0-9]{1,18})/([0-9]{1,18})")


class NoRangesError(Exception):
    """The server sends whole files only."""


class ChangedError(Exception):
    """The file on the server is not the one that was begun."""


class EncodedError(ReadError):
    """The server sends an encoded file, whose offsets mean nothing."""


class RemoteFile(io.RawIOBase):
    """A seekable file whose bytes come by ranges; `want` fetches ahead.

    `locate` returns the file's URL, anew each time. Raises on creation:
    `NoRangesError`, `EncodedError`, `ReadError`; on reading `ChangedError`, too.
    """

    def __init__(self, session: Session, locate: Callable[[], str]) -> None:
        super().__init__()
        self._session = session
        self._locate = locate
        self._at = 0
        self._held: list[tuple[int, bytes]] = []
        with session.get(locate(), {"Range": "bytes=0-0"}) as answer:
            refuse_encoding(answer)
            if answer.status != 206:
                raise NoRangesError
            _, _, self.size = _content_range(answer)
            self._url = answer.url
            self._validator = _validator(answer)
            answer.body(1)

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return the offset of the next byte."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to an offset and return it; raise ValueError for one before the beginning."""
        at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at}.get(whence, self.size)
        if at < 0:
            raise ValueError(f"an offset of {at}")
        self._at = at
        return at

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes, from what is held or from the server."""
        end = self.size if size < 0 else min(self._at + size, self.size)
        if end <= self._at:
            return b""
        data = self._find(self._at, end)
        if data is None and end - self._at > _MOST:
            raise EOFError(f"it asks for {end - self._at} bytes at once")
        if data is None:
            self._held.append((self._at, self._fetch(self._at, end)))
            data = self._held[-1][1]
        self._at = end
        return data

    def want(self, stretches: Iterable[tuple[int, int]]) -> None:
        """Hold these stretches (start, end), and nothing else but the file's end."""
        self._held = self._held[:1]
        for start, end in coalesce(stretches):
            if self._find(start, end) is None:
                self._held.append((start, self._fetch(start, end)))

    def _find(self, start: int, end: int) -> bytes | None:
        for at, data in self._held:
            if at <= start and end <= at + len(data):
                return data[start - at : end - at]
        return None

    def _fetch(self, start: int, end: int) -> bytes:
        try:
            return self._ask(start, end)
        except ForbiddenError:
            self._url = self._locate()
            return self._ask(start, end)

    def _ask(self, start: int, end: int) -> bytes:
        """Return bytes from `start` to before `end`; a body that breaks off is asked again."""
        headers = {"Range": f"bytes={start}-{end - 1}"} | self._validator
        for attempt in range(self._session.settings.retries + 1):
            with self._session.get(self._url, headers) as answer:
                refuse_encoding(answer)
                # Last-Modified may be left out of a 206, ETag may not (RFC 9110 § 15.3.7).
                if (
                    answer.status != 206
                    or (_validator(answer) or self._validator) != self._validator
                ):
                    raise ChangedError
                if _content_range(answer) != (start, end - 1, self.size):
                    raise ChangedError
                self._url = answer.url
                try:
                    data = answer.body(end - start)
                except UnreachableError:
                    if attempt == self._session.settings.retries:
                        raise
                    continue
            if len(data) == end - start:
                return data
        raise ChangedError


def coalesce(stretches: Iterable[tuple[int, int]], gap: int = GAP) -> list[tuple[int, int]]:
    """Return the stretches in order, joined where no more than `gap` bytes lie between.

    Example:
    >>> coalesce([(90, 95), (0, 10), (12, 20)], gap=5)
    [(0, 20), (90, 95)]
    """
    joined: list[tuple[int, int]] = []
    for start, end in sorted(stretches):
        if joined and start - joined[-1][1] <= gap:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined


def download(
    session: Session, url: str, target: IO[bytes], progress: Callable[[int, int | None], None]
) -> int:
    """Write the whole file to `target` and return its size; progress is (done, total)."""
    done = 0
    with session.get(url, {}) as answer:
        refuse_encoding(answer)
        length = answer.headers.get("content-length", "")
        total = int(length) if _LENGTH.fullmatch(length) else None
        progress(0, total)
        for chunk in answer.chunks():
            target.write(chunk)
            done += len(chunk)
            progress(done, total)
    return done


def refuse_encoding(answer: Answer) -> None:
    """Raise `EncodedError` if the body is not the file's own bytes."""
    encoding = answer.headers.get("content-encoding", "identity")
    if encoding.lower() != "identity":
        raise EncodedError(
            f"{shown(answer.url)} comes encoded as {encoding}",
            why="patchq asks for identity; a wheel's offsets mean nothing in encoded bytes",
            mend="pip download the wheel and run: patchq fetch ./FILE.whl",
        )


def _content_range(answer: Answer) -> tuple[int, int, int]:
    found = _RANGE.fullmatch(answer.headers.get("content-range", "").strip())
    if found is None:
        raise NoRangesError
    start, end, total = map(int, found.groups())
    return start, end, total


def _validator(answer: Answer) -> dict[str, str]:
    """Return the If-Range header that names this very file (RFC 9110 § 13.1.5: no weak tags)."""
    tag = answer.headers.get("etag", "")
    if tag and not tag.startswith("W/"):
        return {"If-Range": tag}
    date = answer.headers.get("last-modified")
    return {"If-Range": date} if date else {}
