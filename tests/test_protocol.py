"""Frames: what is taken from a peer that is not trusted, and what it may cost."""

import json
import os
import random
import tracemalloc
import zlib

import pytest

from patchq.agent import protocol

CONTENTS = {protocol.sha256(data): data for data in (b"", b"a", b"tuple[int, ...]\n" * 9000)}
NAME = "0" * 64


def cut(frame):
    """Return JSON and blob of a frame."""
    size = protocol.HEADER.size
    head, tail = protocol.lengths(frame[:size])
    assert len(frame) == size + head + tail
    return memoryview(frame)[size : size + head], memoryview(frame)[size + head :]


def head(blobs, **more):
    return json.dumps({"ok": {}, **more, "blobs": blobs}).encode()


def refusal(text, tail=b""):
    with pytest.raises(protocol.ProtocolError) as caught:
        protocol.unpack(text, tail)
    assert len(str(caught.value)) < 500
    return str(caught.value)


@pytest.mark.parametrize("blobs", [{}, CONTENTS, dict(list(CONTENTS.items())[:1])])
def test_what_is_packed_is_unpacked(blobs):
    message, found = protocol.unpack(*cut(protocol.pack({"ok": {"é": "\udcff"}}, blobs)))

    assert message == {"ok": {"é": "\udcff"}}
    assert found == blobs


def test_contents_that_do_not_pack_are_unpacked():
    data = [os.urandom(size) for size in (1, 100_000, 3 << 20, 0, 17)]
    blobs = {protocol.sha256(each): each for each in data}

    assert protocol.unpack(*cut(protocol.pack({}, blobs)))[1] == blobs


@pytest.mark.slow
def test_a_file_of_20_megabytes_goes_both_ways():
    data = random.Random(1).randbytes(20_000_000)
    name = protocol.sha256(data)

    assert protocol.unpack(*cut(protocol.pack({}, {name: data})))[1][name] == data


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[]",
        b"5",
        b"null",
        b'"blobs"',
        b"{}",
        b'{"blobs":5}',
        b'{"blobs":[5]}',
        b'{"blobs":[["a",1,2]]}',
        b'{"blobs":{"a":1}}',
        b"\xff\xfe",
        b'{"ok":"\xc3\xa9","blobs":[]}',
        b'{"ok":' + b"9" * 10_000 + b',"blobs":[]}',
    ],
)
def test_what_is_no_frame_is_refused(text):
    assert "not a frame" in refusal(text)


@pytest.mark.parametrize("name", [{}, ["a"], None, 5, "", "a", "a" * 100_000])
def test_a_content_without_a_digest_is_refused(name):
    assert refusal(head([[name, 0]])) == "a content is not named by a sha256"


@pytest.mark.parametrize(
    "length", [-1, 1.0, True, None, "1", [], float("inf"), float("nan"), 1 << 70]
)
def test_a_length_that_is_none_is_refused(length):
    assert refusal(head([[NAME, length]])) == f"content {NAME} has no length"


def test_a_length_may_not_make_up_for_another():
    packed = zlib.compress(b"a")

    assert "no length" in refusal(head([[NAME, -1], [protocol.sha256(b"a"), 2]]), packed)


@pytest.mark.parametrize(
    ("deep", "shut"), [(b"[", b"]"), (b'{"a":', b"}"), (b"[{},", b"]"), (b'{"a":', b"")]
)
@pytest.mark.parametrize("times", [51, 900, 200_000])
def test_a_document_nested_without_end_is_refused(deep, shut, times):
    text = b'{"blobs":[],"ok":' + deep * times + (b"0" if shut else b"") + shut * times + b"}"

    assert "nested too deep" in refusal(text) or not shut


def test_a_document_of_some_depth_is_taken():
    deep = []
    for _ in range(40):
        deep = [deep]

    assert protocol.unpack(head([], ok=deep), b"")[0]["ok"] == deep


@pytest.mark.parametrize(
    ("size", "packed"),
    [
        (5, b""),
        (5, b"damaged"),
        (5, zlib.compress(b"four")),
        (5, zlib.compress(b"five!!")),
        (5, zlib.compress(b"five!") + b"more"),
        (5, zlib.compress(b"five!")[:-1]),
        (100_000, zlib.compress(bytes(99_999))),
        (100_000, zlib.compress(bytes(100_001))),
        (100_000, zlib.compress(bytes(100_000)) + bytes(100_000)),
    ],
)
def test_a_blob_that_holds_other_than_announced_is_refused(size, packed):
    name = protocol.sha256(b"five!" if size == 5 else bytes(size))

    assert refusal(head([[name, size]]), packed)


def test_a_blob_that_nobody_announced_is_refused():
    assert "other than" in refusal(head([]), zlib.compress(b"a"))


def test_a_content_is_checked_by_its_hash():
    assert "damaged" in refusal(head([[NAME, 1]]), zlib.compress(b"a"))


@pytest.mark.parametrize(
    ("sizes", "reason"),
    [
        ((1 << 29, 0), "536.9 MB of text; patchq takes at most 16.8 MB"),
        ((0, 1 << 29), "536.9 MB of packed contents; patchq takes at most 33.6 MB"),
        ((0xFFFFFFFF, 0xFFFFFFFF), "4295.0 MB"),
        ((protocol.HEAD_LIMIT + 1, 0), "16.8 MB"),
    ],
)
def test_a_frame_that_is_too_large_is_refused_by_its_header(sizes, reason):
    with pytest.raises(protocol.ProtocolError, match=reason):
        protocol.lengths(protocol.HEADER.pack(*sizes))


def test_a_frame_at_the_limit_is_taken():
    sizes = (protocol.HEAD_LIMIT, protocol.BLOB_LIMIT)

    assert protocol.lengths(protocol.HEADER.pack(*sizes)) == sizes


def peak(work):
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.slow
def test_a_zip_bomb_costs_no_more_than_was_announced():
    bomb = zlib.compress(bytes(1 << 28), 1)

    assert peak(lambda: refusal(head([[NAME, 100_000]]), bomb)) < 2 << 20


def test_contents_over_the_limit_are_refused_before_they_are_unpacked():
    text = head([[NAME, protocol.CONTENTS_LIMIT // 2], [NAME[1:] + "1", 1 << 30]])

    assert peak(lambda: refusal(text, b"not even zlib")) < 1 << 20
    assert "MB of contents; patchq takes at most 41.9 MB" in refusal(text, b"")


@pytest.mark.slow
@pytest.mark.parametrize("value", [b"[]", b"{}", b"0.5", b'"abcdef"'])
def test_a_document_of_countless_values_is_refused_before_it_is_read(value):
    text = b'{"blobs":[],"ok":[' + b",".join([value] * (15_000_000 // (len(value) + 1))) + b"]}"

    assert peak(lambda: refusal(text)) < len(text) + (2 << 20)
    assert "values; patchq takes at most 786432" in refusal(text)


def test_any_damaged_frame_is_refused_or_read():
    chance = random.Random(7)
    frame = protocol.pack({"ok": {"files": {"a": None}, "n": [1, 2.5]}}, CONTENTS)
    for _ in range(300):
        data = bytearray(frame)
        for _ in range(chance.choice((1, 1, 2, 8))):
            data[chance.randrange(len(data))] = chance.choice((0, 0xFF, chance.randrange(256)))
        if chance.random() < 0.2:
            del data[chance.randrange(len(data)) :]
        try:
            size, tail = protocol.lengths(data[:8])
            blobs = protocol.unpack(data[8 : 8 + size], data[8 + size : 8 + size + tail])[1]
        except protocol.ProtocolError:
            continue
        assert all(protocol.sha256(content) == name for name, content in blobs.items())


@pytest.mark.parametrize("path", ["a: b", "C:evil.py", "c:", "demo/C:/x.py", "z::$DATA", "é:x"])
def test_a_name_like_a_drive_is_a_name_on_linux(path):
    assert protocol.unsafe(path) is None


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("C:/../x", "it has a part '..'"),
        ("C:\\x", "it holds a backslash"),
        ("/C:x", "it is absolute"),
        (".git:x/config", "it names .git"),
        ("C:/.GIT::$INDEX_ALLOCATION", "it names .git"),
        (".patchq:x", "it names patchq's own state"),
    ],
)
def test_a_colon_makes_no_other_name_safe(path, reason):
    assert protocol.unsafe(path) == reason
