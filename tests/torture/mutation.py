"""Bytes that somebody spoiled: a little, in many places, or by one thing again and again."""

from __future__ import annotations

import random
from collections.abc import Iterator

SIZE = 1 << 16
# What grammars are sensitive to; each is also repeated to `SIZE` bytes.
TOKENS = (
    *(bytes([byte]) for byte in b"\0\n\r\t\v\f \"'\\/,=:;{}[]()#-+*?!%&<>|@~_0a\xff\x85"),
    *(b"..", b"a,", b"a ", b" #", b"a/", b"/../", b"\r\n", b"NaN", b"null", b"true", b"-1"),
    *(b"@@ -1 +1 @@\n", b"--- a/x\n+++ b/x\n", b"diff --git a/x b/x\n", b"rename from x\n"),
    *(b"\xed\xa0\x80", b"\\ud800", b"\xc2\xb2", b"\xe2\x80\xa8", b"\x1b[31m", b"1e999"),
    *(b"[0-9]", b"[1-", b"%(x)s", b"// [", b"http://[", b"&#x110000;", b"<!", b"<![", b"</"),
    *(b"<a href=", b'"\\303\\251"', b"# in a.py\n", b"# when ", b"_x_", b"...", b'f"{'),
    *(b"lambda:", b"if 1:\n ", b"[[],", b'{"a":', b'"a":1,', b"|1|AAAA|AAAA ", b"Host *\n"),
    b"9" * 5_000,
)


def spoiled(seed: bytes, chance: random.Random) -> bytes:
    """Return `seed` with a few bytes changed, lost, doubled, moved, or put in."""
    data = bytearray(seed)
    for _ in range(chance.choice((1, 1, 2, 3, 8))):
        start = chance.randrange(len(data) + 1)
        end = min(len(data), start + chance.choice((1, 1, 4, 30)))
        match chance.randrange(7):
            case 0 if data:
                data[min(start, len(data) - 1)] = chance.randrange(256)
            case 1:
                del data[start:end]
            case 2:
                data[start:start] = chance.choice(TOKENS)
            case 3:
                data[start:end] = chance.choice(TOKENS)
            case 4:
                data[start:start] = data[start:end] * chance.choice((1, 3, 200))
            case 5:
                del data[start:]
            case _:
                at = chance.randrange(len(data) + 1)
                data[start:start] = data[at : at + 40]
    return bytes(data[:SIZE])


def grown(seed: bytes) -> Iterator[bytes]:
    """Yield `seed` with one token again and again, before, in, and behind it."""
    for token in TOKENS:
        for at in (0, len(seed) // 2, len(seed)):
            yield (seed[:at] + token * (SIZE // len(token)) + seed[at:])[:SIZE]


def values(document: object, chance: random.Random) -> object:
    """Return a JSON document in which one value, or key, is another one."""
    places = [*_places(document)]
    if not places:
        return chance.choice(ODD)
    inside, key = chance.choice(places)
    match chance.randrange(4):
        case 0:
            inside.pop(key)
        case 1 if isinstance(inside, dict):
            inside[chance.choice(NAMES)] = inside.pop(key)
        case _:
            inside[key] = chance.choice(ODD)
    return document


NAMES = ("", "../x", "/etc/passwd", "\0", "\ud800", "a" * 5_000, ".git/config", "\x1b[31m\n", "9")
ODD = (
    *(
        None,
        True,
        False,
        0,
        -1,
        1 << 70,
        1.5,
        float("nan"),
        float("inf"),
        [],
        {},
        [[]],
        {"": None},
    ),
    *NAMES,
    *([[0] * 5_000, {str(n): n for n in range(5_000)}, "0" * 64, ["0" * 64], [[1, 2, 3]]]),
)


def _places(document: object) -> Iterator[tuple[dict | list, str | int]]:  # type: ignore[type-arg]
    items = (
        document.items()
        if isinstance(document, dict)
        else enumerate(document)
        if isinstance(document, list)
        else ()
    )
    for key, value in items:
        assert isinstance(document, dict | list)
        yield document, key
        yield from _places(value)
