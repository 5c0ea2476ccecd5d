"""The wire format between patchq and its agent, and the rule for paths.

A frame is a header of two big-endian unsigned 32-bit lengths, then a JSON
document (ASCII), then a blob (zlib). The JSON's key ``blobs`` lists
``[sha256, length]`` of the contents in the blob, in order. Requests carry
``op``; answers carry ``ok`` or ``error`` (``word``, ``what``, ``why``, ``mend``).
Version 1. Neither side trusts the other: nothing is taken beyond the limits here.

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
from typing import Any, Dict, List, Mapping, Optional, Tuple, Union

VERSION = 1
HEADER = struct.Struct(">II")
_MIB = 1 << 20
# Whatever a peer sends must fit into 200 MB of memory. A push of 1,000 patches has a head of
# some 1 MB; text packs to a quarter, so a blob of this size holds more than `CONTENTS_LIMIT`.
HEAD_LIMIT = 16 * _MIB
BLOB_LIMIT = 32 * _MIB
# Unpacked; all Python files of a vLLM are some 15 MB.
CONTENTS_LIMIT = 40 * _MIB
# Values in a JSON document, some 80 bytes each once they are read: `[[],[],...` of 16 MiB
# would take 350 MB. patchq's own have one value in 25 characters.
VALUES_LIMIT = 3 << 18
# Whoever reads or prints a document may recurse; patchq's own are nested some 8 deep.
DEPTH_LIMIT = 50
_CHUNK = 1 << 14

Bytes = Union[bytes, bytearray, memoryview]
Message = Dict[str, Any]


class ProtocolError(Exception):
    """The bytes are not a frame of this protocol."""


def marker(nonce: bytes, equal: bool = False) -> bytes:
    """Return the bytes that tell where the agent's output begins.

    `equal`: its interpreter takes bytecode of the one that asks.
    """
    return b"\n\0" + nonce + (b"=" if equal else b"\0")


def sha256(data: bytes) -> str:
    """Return the hex digest by which contents are named everywhere."""
    return hashlib.sha256(data).hexdigest()


def pack(
    message: Mapping[str, Any],
    blobs: Optional[Mapping[str, bytes]] = None,
    tail: Optional[bytes] = None,
) -> bytes:
    """Return one frame; `blobs` maps sha256 to contents, `tail` is them `packed`, if known."""
    contents = dict(blobs or {})
    document = dict(message, blobs=[[name, len(data)] for name, data in contents.items()])
    head = json.dumps(document, separators=(",", ":")).encode()
    if tail is None:
        tail = packed(contents)
    return HEADER.pack(len(head), len(tail)) + head + tail


def packed(contents: Mapping[str, bytes]) -> bytes:
    """Return contents as one blob."""
    deflate = zlib.compressobj(1)
    parts = [deflate.compress(data) for data in contents.values()]
    return b"".join(parts) + deflate.flush() if contents else b""


def lengths(header: Bytes) -> Tuple[int, int]:
    """Return the lengths of JSON and blob that a frame's header announces."""
    if len(header) != HEADER.size:
        raise ProtocolError("the stream ended inside a frame's header")
    head, tail = HEADER.unpack(header)
    _limit("text", head, HEAD_LIMIT)
    _limit("packed contents", tail, BLOB_LIMIT)
    return head, tail


def unpack(head: Bytes, tail: Bytes) -> Tuple[Message, Dict[str, bytes]]:
    """Return message and contents of one frame; every content is checked by hash."""
    try:
        text = str(head, "ascii")
        values = sum(map(text.count, "[{,:"))
        if values > VALUES_LIMIT:
            raise ProtocolError(
                "a frame has %d values; patchq takes at most %d" % (values, VALUES_LIMIT)
            )
        message = json.loads(text)
        del text  # as long as the head: room for the contents
        if not isinstance(message, dict):
            raise ProtocolError("not a frame of patchq's protocol: no JSON object")
        if _is_deep(message):
            raise RecursionError
        blobs = _inflate(memoryview(tail), _listed(message.pop("blobs")))
    except (ValueError, KeyError, TypeError, AttributeError, zlib.error) as error:
        raise ProtocolError("not a frame of patchq's protocol: %s" % error) from error
    except RecursionError as error:
        raise ProtocolError("not a frame of patchq's protocol: nested too deep") from error
    return message, blobs


def _is_deep(document: Any) -> bool:
    """Return True where a document is nested deeper than `DEPTH_LIMIT`."""
    level = [document]
    for _ in range(DEPTH_LIMIT):
        inside = (each.values() if isinstance(each, dict) else each for each in level)
        level = [each for one in inside for each in one if isinstance(each, (dict, list))]
        if not level:
            return False
    return True


def _listed(blobs: Any) -> List[Tuple[str, int]]:
    """Return digest and length of each content, as the key ``blobs`` has them."""
    listed = [(name, length) for name, length in blobs]
    for name, length in listed:
        if not isinstance(name, str) or len(name) != 64:
            raise ProtocolError("a content is not named by a sha256")
        if type(length) is not int or not 0 <= length < 1 << 63:
            raise ProtocolError("content %s has no length" % name)
    check_contents(sum(length for _, length in listed))
    return listed


def check_contents(size: int) -> None:
    """Raise `ProtocolError` where contents of `size` bytes together are not taken."""
    _limit("contents", size, CONTENTS_LIMIT)


def _inflate(tail: memoryview, listed: List[Tuple[str, int]]) -> Dict[str, bytes]:
    """Return the contents of a blob, which must hold just what was announced."""
    if not listed and not tail:
        return {}
    inflate, at, left = zlib.decompressobj(), 0, b""
    blobs: Dict[str, bytes] = {}
    for name, missing in listed:
        parts: List[bytes] = []
        while missing:
            # What was fed in may have more to give than it was asked for, also at the end.
            feed: Bytes = left or tail[at : at + _CHUNK]
            at += 0 if left else len(feed)
            part = inflate.decompress(feed, min(missing, _MIB))
            left = inflate.unconsumed_tail
            if not part and (inflate.eof or not feed):
                raise ProtocolError("a blob holds fewer bytes than were announced")
            parts.append(part)
            missing -= len(part)
        data = blobs[name] = b"".join(parts)
        if sha256(data) != name:
            raise ProtocolError("content %s arrived damaged" % name)
    if inflate.decompress(left + bytes(tail[at:]), 1) or inflate.unused_data or not inflate.eof:
        raise ProtocolError("a blob holds other than the bytes announced")
    return blobs


def _limit(what: str, size: int, most: int) -> None:
    if size > most:
        raise ProtocolError(
            "a frame has %.1f MB of %s; patchq takes at most %.1f MB"
            % (size / 1e6, what, most / 1e6)
        )


# Code points that HFS+ ignores in names: ".g\u200cit" opens ".git" there (git's verify_path).
_IGNORED = re.compile("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")


def unsafe(path: str) -> Optional[str]:
    """Return why `path` must not be used below a site-packages folder, or None.

    A path is text (a byte that is not UTF-8 is one of U+DC80 to U+DCFF), POSIX and
    relative, without ``.`` and ``..`` parts, control characters and backslashes; it
    never names ``.git`` in a spelling that some file system takes for it (git's
    verify_path), nor patchq's own state, nor a dist-info. ``C:x`` is a name as any other:
    environments are Linux's, and git's has_dos_drive_prefix is of Windows alone.
    """
    if not path or path.startswith("/"):
        return "it is empty" if not path else "it is absolute"
    plain_text = path.isascii() and path.isprintable()  # as most are: not looked at by character
    if not plain_text:
        if any("\ud800" <= char <= "\udfff" and not "\udc80" <= char <= "\udcff" for char in path):
            return "it is not text"
        if any(ord(char) < 32 or ord(char) == 127 for char in path):
            return "it holds a control character"
    if "\\" in path:
        return "it holds a backslash"
    for part in path.split("/"):
        if part in ("", ".", ".."):
            return "it has a part %r" % part
        plain = part if plain_text else unicodedata.normalize("NFKC", _IGNORED.sub("", part))
        plain = plain.casefold().split(":")[0].rstrip(". ")
        if plain in (".git", "git~1"):
            return "it names .git"
        if plain == ".patchq":
            return "it names patchq's own state"
        if plain.endswith((".dist-info", ".egg-info")):
            return "it names a distribution's metadata"
    return None
