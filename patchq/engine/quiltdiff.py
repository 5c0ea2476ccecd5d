"""The unified diff of two texts as quilt(1) writes it: `Index:` lines, `DIR.orig/` names.

`textdiff` is the same in git's words, and what patchq writes where nobody asks for
quilt's. The lines that changed are shown where GNU diff shows them, as late as they can be.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, tzinfo

from patchq.engine import alignment, cquote, hunks, lines
from patchq.engine.alignment import Change

RULE = "=" * 67
# When a file that is not there was changed, in quilt's patches.
NEVER = "1970-01-01 00:00:00.000000000 +0000"
STRIPS = ("ab", "0", "1")


def render(
    before: bytes | None,
    after: bytes | None,
    path: str,
    *,
    strip: str = "ab",
    top: str = "",
    context: int = 3,
    index: bool = True,
    timestamps: tuple[str, str] | None = None,
) -> bytes:
    r"""Return quilt's diff that turns `before` into `after`, empty where they are equal.

    None is an absent file; like quilt an empty old one counts as absent, so a file that
    is made or taken away empty gives no diff. `strip` is quilt's ``-p``; `top` names the
    tree's folder, which ``-p1`` writes. `timestamps` are those of the two files (`stamp`); of
    a file that is not there `NEVER` is written. Names with blanks are quoted, as since quilt 0.68.

    Raises:
        ValueError: `strip` is none of `STRIPS`.

    Example:
        >>> print(render(b"1\n", b"2\n", "x", strip="1", top="d").decode(), end="")
        Index: d/x
        ===================================================================
        --- d.orig/x
        +++ d/x
        @@ -1 +1 @@
        -1
        +2
    """
    old, new = lines.split(before or b""), lines.split(after or b"")
    if old == new:
        return b""
    pair = names(path, strip, top, (bool(old), after is not None))
    title = _bare(path, strip, top)[1]
    out = [f"Index: {title}\n{RULE}\n"] if index else []
    stamps = _stamps(timestamps, pair)
    for mark, name, when in zip(("---", "+++"), pair, stamps, strict=True):
        out.append(f"{mark} {_quoted(name)}{when}\n")
    body = hunks.lay_out(old, new, changes(old, new, context), context)
    return lines.encode("".join(out)) + b"".join(body)


def names(path: str, strip: str, top: str, there: tuple[bool, bool]) -> tuple[str, str]:
    """Return what quilt calls the old and the new side of a file, by which of them are there.

    With ``-p0`` a file that goes keeps its name on the old side: nothing else would say it.

    Raises:
        ValueError: `strip` is none of `STRIPS`.
    """
    old, new = _bare(path, strip, top)
    if strip == "0" and not there[1]:
        old = new
    return (old if there[0] else "/dev/null", new if there[1] else "/dev/null")


def changes(old: list[bytes], new: list[bytes], context: int) -> Iterator[Change]:
    """Yield the changes where GNU diff shows them.

    It looks no further into the ends that are equal than it shows of them (its
    ``--horizon-lines``), so a change slides no further either.
    """
    most = min(len(old), len(new))
    start = 0
    while start < most and old[start] == new[start]:
        start += 1
    start = max(start - context, 0)
    tail = 0
    while tail < most - start and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    tail = max(tail - context, 0)
    one, two = old[start : len(old) - tail], new[start : len(new) - tail]
    for a0, a1, b0, b1 in alignment.changes(one, two):
        yield Change(a0 + start, a1 + start, b0 + start, b1 + start)


def stamp(nanoseconds: int, zone: tzinfo | None = None) -> str:
    """Return a file's time as GNU diff writes it, in a time zone: the machine's if None.

    Example:
        >>> stamp(1_700_000_000_123_456_789, UTC)
        '2023-11-14 22:13:20.123456789 +0000'
    """
    seconds, rest = divmod(nanoseconds, 10**9)
    when = datetime.fromtimestamp(seconds, UTC).astimezone(zone)
    return f"{when:%Y-%m-%d %H:%M:%S}.{rest:09} {when:%z}"


def is_binary(data: bytes | None) -> bool:
    """Return whether GNU diff takes a file for binary: with a NUL in its first 32 KiB."""
    return data is not None and b"\0" in data[: 1 << 15]


def _bare(path: str, strip: str, top: str) -> tuple[str, str]:
    if strip == "ab":
        return f"a/{path}", f"b/{path}"
    if strip == "0":
        return f"{path}.orig", path
    if strip == "1":
        return f"{top}.orig/{path}", f"{top}/{path}"
    raise ValueError(f"-p{strip}: quilt writes -p{', -p'.join(STRIPS)}")


def _stamps(timestamps: tuple[str, str] | None, names: tuple[str, str]) -> tuple[str, str]:
    if timestamps is None:
        return "", ""
    old, new = timestamps
    gone = [name == "/dev/null" for name in names]
    return f"\t{NEVER if gone[0] else old}", f"\t{NEVER if gone[1] else new}"


def _quoted(name: str) -> str:
    """Return a name as patch(1) reads it whole: quoted where it has blanks."""
    if name.startswith('"') or any(char.isspace() or char < " " for char in name):
        plain = cquote.quote(name)
        return plain if plain.startswith('"') else f'"{name}"'
    return name
