"""Rows of RECORD as bytes: looked up and replaced without touching the others.

pip ends rows in CRLF, uv in LF; order, quoting and terminators of rows that do
not change are kept byte for byte. Paths are POSIX, relative to site-packages;
a row is ``path,sha256=<urlsafe base64 without padding>,<size>``, and ``path,,``
for a file whose digest is not known yet (Recording installed projects, PyPA).
"""

from __future__ import annotations

import binascii
from typing import Dict, Mapping, Optional


def row(path: str, sha256: Optional[str] = None, size: int = 0) -> bytes:
    """Return the row of `path` without its terminator; ``,,`` without a digest."""
    name = path.encode("utf-8", "surrogateescape")
    if b"," in name or b'"' in name:
        name = b'"' + name.replace(b'"', b'""') + b'"'
    if sha256 is None:
        return name + b",,"
    digest = binascii.b2a_base64(binascii.unhexlify(sha256), newline=False)
    digest = digest.rstrip(b"=").translate(bytes.maketrans(b"+/", b"-_"))
    return name + b",sha256=" + digest + b",%d" % size


def find(data: bytes, path: str) -> Optional[bytes]:
    """Return the row of `path` without its terminator, None where it is not listed."""
    name = row(path)[:-2]
    # Some tools quote what needs no quotes.
    for start in (name + b",",) if name.startswith(b'"') else (name + b",", b'"%s",' % name):
        at = 0 if data.startswith(start) else data.find(b"\n" + start) + 1
        if at or data.startswith(start):
            end = data.find(b"\n", at)
            return data[at : len(data) if end < 0 else end].rstrip(b"\r")
    return None


def digest(data: bytes, path: str) -> Optional[str]:
    """Return the hex SHA-256 that RECORD has for `path`, None where it has none."""
    found = find(data, path)
    if found is None:
        return None
    parts = found.rsplit(b",", 2)
    if len(parts) != 3 or not parts[1].startswith(b"sha256="):
        return None
    text = parts[1][7:].translate(bytes.maketrans(b"-_", b"+/"))
    try:
        return binascii.hexlify(binascii.a2b_base64(text + b"=" * (-len(text) % 4))).decode()
    except binascii.Error:
        return None


def update(data: bytes, rows: Mapping[str, Optional[bytes]]) -> bytes:
    """Return RECORD with `rows` set (None: removed), all others as they were.

    A row keeps its place; new rows go last, with the file's own terminator.
    """
    if not rows:
        return data
    wanted: Dict[bytes, Optional[bytes]] = {row(path)[:-2]: new for path, new in rows.items()}
    lines = data.split(b"\n")
    tail = lines.pop()
    end = b"\r\n" if lines and lines[0].endswith(b"\r") else b"\n"
    out = []
    starts = (b'"', *wanted)  # most rows are none of these: not looked at further
    for line in lines:
        name = _name(line) if line.startswith(starts) else None
        if name not in wanted:
            out.append(line + b"\n")
            continue
        new = wanted.pop(name)
        if new is not None:
            out.append(new + (b"\r\n" if line.endswith(b"\r") else b"\n"))
    if tail:
        name = _name(tail)
        last = wanted.pop(name) if name in wanted else tail
        if last is not None:
            out.append(last + (end if any(wanted.values()) else b""))
    out.extend(new + end for new in wanted.values() if new is not None)
    return b"".join(out)


def _name(line: bytes) -> bytes:
    """Return the first field of a row as `row` writes it: in quotes where it needs them."""
    if not line.startswith(b'"'):
        return line.partition(b",")[0]
    at = 1
    while True:
        at = line.find(b'"', at)
        if at < 0:
            return line
        if line[at + 1 : at + 2] != b'"':
            bare = line[1:at]
            return line[: at + 1] if b"," in bare or b'"' in bare else bare
        at += 2
