"""What a wheel may cost: refused before it takes memory, by what its directory says.

zipfile trusts an archive: it unpacks all that is packed in a member, and cuts it to the
announced size afterwards. Here no member gives more than it announces, and what all
announce together is bounded.
"""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Sequence

# All text of one wheel together; the largest known have some 200 MB.
_TOTAL = 1 << 29
# Text packs to a quarter, tables of numbers to a tenth: beyond this it is a bomb.
_RATIO = 100
_UNSUSPECTED = 64 << 20
# Linux takes paths of 4,096 bytes; whoever walks a tree goes as deep as they are.
_PARTS = 100
_PATH = 1000

# What zipfile raises for bytes that are no archive: offsets beyond the file, bad names ...
DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    NotImplementedError,
    OSError,
    ValueError,
    OverflowError,
)


def excess(member: zipfile.ZipInfo) -> str | None:
    """Return why a member's path or packed size is none, None for one that may be."""
    path = member.orig_filename
    if len(path) > _PATH or path.count("/") >= _PARTS:
        return f"its path has more than {_PARTS} parts or {_PATH} characters"
    # Deflate adds 5 bytes to each block of what it cannot pack.
    if member.compress_size > 2 * member.file_size + 4096:
        return f"{member.compress_size} bytes cannot be {member.file_size} packed ones"
    return None


def bomb(members: Sequence[zipfile.ZipInfo]) -> str | None:
    """Return why these members are too much to unpack, None if they are not."""
    size = sum(each.file_size for each in members)
    if size > _TOTAL:
        return f"its text would be more than {_TOTAL} bytes"
    packed = sum(each.compress_size for each in members)
    if size > max(_UNSUSPECTED, _RATIO * packed):
        return f"it is a zip bomb: {packed} bytes unpack to {size}"
    return None


def content(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    """Return a member's bytes, no more than it announces."""
    with archive.open(member) as file:
        return file.read(member.file_size + 1)
