"""The wire format between patchq and its agent, and the rule for paths.

A frame is a header of two big-endian unsigned 32-bit lengths, then a JSON
document (UTF-8), then a blob (zlib). The JSON's key ``blobs`` lists
``[sha256, length]`` of the contents in the blob, in order. Requests carry
``op``; answers carry ``ok`` or ``error`` (``word``, ``what``, ``why``, ``mend``).
Version 1.

Before the first frame the agent writes a sync marker, so that whatever a
login shell prints first is skipped: newline, NUL, nonce, NUL.
"""

from __future__ import annotations

import hashlib
import json
import re
import struct
import unicodedata
import zlib
from typing import Any, Dict, Mapping, Optional, Tuple

VERSION = 1
HEADER = struct.Struct(">II")
# A frame larger than this is not ours; 1 GiB would hold every .py of ten vLLMs.
LIMIT = 1 << 30

Message = Dict[str, Any]


class ProtocolError(Exception):
    """The bytes are not a frame of this protocol."""


def marker(nonce: bytes) -> bytes:
    """Return the bytes that tell where the agent's output begins."""
    return b"\n\0" + nonce + b"\0"


def sha256(data: bytes) -> str:
    """Return the hex digest by which contents are named everywhere."""
    return hashlib.sha256(data).hexdigest()


def pack(message: Mapping[str, Any], blobs: Optional[Mapping[str, bytes]] = None) -> bytes:
    """Return one frame; `blobs` maps sha256 to contents."""
    contents = dict(blobs or {})
    document = dict(message, blobs=[[name, len(data)] for name, data in contents.items()])
    head = json.dumps(document, separators=(",", ":")).encode()
    tail = zlib.compress(b"".join(contents.values()), 1) if contents else b""
    return HEADER.pack(len(head), len(tail)) + head + tail


def lengths(header: bytes) -> Tuple[int, int]:
    """Return the lengths of JSON and blob that a frame's header announces."""
    if len(header) != HEADER.size:
        raise ProtocolError("the stream ended inside a frame's header")
    head, tail = HEADER.unpack(header)
    if head + tail > LIMIT:
        raise ProtocolError("a frame of %d bytes is over the limit" % (head + tail))
    return head, tail


def unpack(head: bytes, tail: bytes) -> Tuple[Message, Dict[str, bytes]]:
    """Return message and contents of one frame; every content is checked by hash."""
    try:
        message = json.loads(head.decode())
        listed = [(name, int(length)) for name, length in message.pop("blobs")]
        data = _inflate(tail, sum(length for _, length in listed))
    except (ValueError, KeyError, TypeError, AttributeError, zlib.error) as error:
        raise ProtocolError("not a frame of patchq's protocol: %s" % error) from error
    blobs, at = {}, 0
    for name, length in listed:
        blobs[name] = data[at : at + length]
        at += length
        if sha256(blobs[name]) != name:
            raise ProtocolError("content %s arrived damaged" % name)
    return message, blobs


def _inflate(tail: bytes, size: int) -> bytes:
    """Return the blob, which must hold just the `size` bytes that were announced."""
    if not 0 <= size <= LIMIT:
        raise ProtocolError("a blob of %d bytes is over the limit" % size)
    if not tail:
        return b""
    data = zlib.decompressobj().decompress(tail, size + 1)
    if len(data) != size:
        raise ProtocolError("a blob holds other than the %d bytes announced" % size)
    return data


# Code points that HFS+ ignores in names: ".g\u200cit" opens ".git" there (git's verify_path).
_IGNORED = re.compile("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")


def unsafe(path: str) -> Optional[str]:
    """Return why `path` must not be used below a site-packages folder, or None.

    A path is POSIX, relative, without ``.`` and ``..`` parts, control characters
    and backslashes; it never names ``.git`` in a spelling that some file system
    takes for it (git's verify_path), nor patchq's own state, nor a dist-info.
    """
    if not path or path.startswith("/"):
        return "it is empty" if not path else "it is absolute"
    if any(ord(char) < 32 or ord(char) == 127 for char in path):
        return "it holds a control character"
    if "\\" in path or re.match(r"[A-Za-z]:", path):
        return "it holds a backslash or a drive letter"
    for part in path.split("/"):
        if part in ("", ".", ".."):
            return "it has a part %r" % part
        plain = unicodedata.normalize("NFKC", _IGNORED.sub("", part)).casefold()
        plain = plain.split(":")[0].rstrip(". ")
        if plain in (".git", "git~1"):
            return "it names .git"
        if plain == ".patchq":
            return "it names patchq's own state"
        if plain.endswith((".dist-info", ".egg-info")):
            return "it names a distribution's metadata"
    return None
