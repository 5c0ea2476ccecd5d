"""A wheel's RECORD: which files it holds, each with digest and size.

Rows are CSV (PEP 376, PEP 427). Digests are those that the binary distribution
format allows: sha256 or stronger. Errors are texts; the caller names the wheel.
"""

from __future__ import annotations

import base64
import binascii
import csv
import hashlib
import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

_DIGESTS = ("sha256", "sha384", "sha512")


class RecordError(ValueError):
    """RECORD is not what the specification says, or a file is not what RECORD says."""


@dataclass(frozen=True, slots=True)
class Row:
    """What RECORD says of one file; `digest` is None where it says nothing."""

    algorithm: str
    digest: bytes | None
    size: int | None


def parse(data: bytes) -> dict[str, Row]:
    """Return path -> row; raise `RecordError` for a row that is none, or a path listed twice."""
    rows: dict[str, Row] = {}
    text = data.decode(errors="surrogateescape")
    try:
        for number, fields in enumerate(csv.reader(io.StringIO(text, newline="")), 1):
            if not fields:
                continue
            if len(fields) != 3:
                raise RecordError(f"RECORD line {number} has {len(fields)} fields, expected 3")
            path, digest, size = fields
            if path in rows:
                raise RecordError(f"RECORD lists {path!r} twice")
            rows[path] = _row(digest, size, path)
    except csv.Error as error:
        raise RecordError(f"RECORD is not CSV: {error}") from error
    return rows


def check(path: str, row: Row, data: bytes) -> None:
    """Raise `RecordError` unless the bytes are those that the row names."""
    if row.size is not None and row.size != len(data):
        raise RecordError(f"{path} has {len(data)} bytes, RECORD says {row.size}")
    found = hashlib.new(row.algorithm, data).digest()
    if found != row.digest:
        wanted = (row.digest or b"").hex()
        raise RecordError(f"{path} has the {row.algorithm} {found.hex()}, RECORD says {wanted}")


def format(files: Iterable[tuple[str, bytes]], own: str) -> bytes:
    """Return a RECORD of these files and of itself (`own`), as pip writes it but for LF."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for path, data in files:
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        writer.writerow((path, f"sha256={digest}", len(data)))
    writer.writerow((own, "", ""))
    return text.getvalue().encode(errors="surrogateescape")


def unlisted(names: Iterable[str], rows: Mapping[str, Row]) -> str | None:
    """Return why one of the archive's files cannot be checked, None if all can."""
    for name in names:
        row = rows.get(name)
        if row is None:
            return f"RECORD does not list {name!r}"
        if row.digest is None:
            return f"RECORD has no digest for {name!r}"
    return None


def _row(digest: str, size: str, path: str) -> Row:
    algorithm, _, encoded = digest.partition("=")
    if not digest:
        return Row("", None, None)
    if algorithm not in _DIGESTS:
        raise RecordError(f"RECORD names {path!r} by {algorithm!r}, expected sha256 or stronger")
    try:
        value = base64.b64decode(encoded + "=" * (-len(encoded) % 4), b"-_", validate=True)
        return Row(algorithm, value, int(size) if size else None)
    except (binascii.Error, ValueError) as error:
        raise RecordError(f"RECORD has no valid digest and size for {path!r}") from error
