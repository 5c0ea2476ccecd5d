"""Which hosts a command line means: lists, ranges, patterns, exceptions.

One ``-H`` has parts between commas. A part may be a host (`patchq.transport.hosts`),
have ranges (``gpu[01-64]``, ``gpu[1,5-8]``; leading zeros are kept), be a pattern over
the names of ssh_config (``gpu*``), or take hosts away again (``!gpu07``, ``!gpu[10-19]``,
``!*-old``). A ``command:`` is one host, whatever it holds.
"""

from __future__ import annotations

import fnmatch
import itertools
import math
import re
from collections.abc import Iterable, Iterator, Sequence

from patchq.errors import UsageError

COMMAND = "command:"
# More hosts than this in one range is a slip of the pen.
_RANGE_LIMIT = 10_000
# ``[01-64]``, ``[1,3-5]``; an IPv6 address in brackets has colons.
_GROUP = re.compile(r"\[([0-9,-]+)]")
_SPAN = re.compile(r"(\d+)(?:-(\d+))?")
# The last number of a name; a port is none, nor is the part of an address.
_NUMBERED = re.compile(r"([^:.]*?)(\d+)([^\d:.]*(?:\.[^:]*)?)")
_PATTERN = re.compile(r"[*?]")


def expand(specs: Sequence[str], known: Sequence[str]) -> tuple[str, ...]:
    """Return the hosts that `specs` name, each once, in the order of their first mention.

    `known` are the names that a pattern is held against.

    Raises:
        UsageError: a range or list cannot be read, a pattern or an exception fits nothing,
            or nothing is left.

    Example:
        >>> expand(["gpu[08-10],!gpu09", "root@db:2222"], [])
        ('gpu08', 'gpu10', 'root@db:2222')
        >>> expand(["gpu*"], ["gpu1", "gpu2", "web1"])
        ('gpu1', 'gpu2')
    """
    found: dict[str, None] = {}
    taken: list[str] = []
    for spec in specs:
        for part in _parts(spec):
            if part.startswith(COMMAND):
                found[part] = None
            elif part.startswith("!"):
                taken += _ranges(part[1:])
            else:
                found.update(dict.fromkeys(_named(part, known)))
    for name in taken:
        if not any(_matches(host, name) for host in found):
            raise UsageError(
                f"'!{name}' takes away no host",
                why=f"named are: {', '.join(found) or 'none'}",
                mend="name a host that is there, or leave it out",
            )
    kept = [host for host in found if not any(_matches(host, name) for name in taken)]
    if specs and not kept:
        raise UsageError(
            "no host is left",
            why=f"{', '.join(specs)} names {len(found)} and takes all of them away",
            mend="patchq VERB -H user@gpu1,gpu2",
        )
    return tuple(kept)


def collapse(hosts: Iterable[str]) -> str:
    """Return hosts in few characters: those that differ in their last number as a range.

    Example:
        >>> collapse(["gpu01", "gpu02", "gpu03", "gpu07", "db"])
        'gpu[01-03,07],db'
    """
    groups: dict[tuple[str, int, str], list[str]] = {}
    for host in hosts:
        found = None if host.startswith(COMMAND) else _NUMBERED.fullmatch(host)
        start, number, end = found.groups() if found else (host, "", "")
        groups.setdefault((start, len(number), end), []).append(number)
    return ",".join(
        f"{start}{_spans(numbers)}{end}" for (start, _, end), numbers in groups.items()
    )


def _spans(numbers: list[str]) -> str:
    if len(numbers) == 1:
        return numbers[0]
    spans: list[list[str]] = []
    for number in sorted(numbers, key=int):
        if spans and int(number) == int(spans[-1][-1]) + 1:
            spans[-1] = [spans[-1][0], number]
        else:
            spans.append([number])
    return f"[{','.join('-'.join(span) for span in spans)}]"


def _parts(spec: str) -> list[str]:
    """Return what lies between commas, but for those in brackets and in a command."""
    if spec.startswith(COMMAND):
        return [spec]
    parts = [part.strip() for part in re.split(r",(?![^\[]*])", spec)]
    if all(parts):
        return parts
    raise UsageError(
        f"{spec!r} names an empty host",
        why="there is nothing before, after or between its commas",
        mend="patchq VERB -H user@gpu1,gpu2",
    )


def _named(part: str, known: Sequence[str]) -> list[str]:
    names = list(_ranges(part))
    if not any(_PATTERN.search(name) for name in names):
        return names
    fits = []
    for pattern in names:
        user, at, bare = pattern.rpartition("@")
        hits = [user + at + name for name in known if fnmatch.fnmatchcase(name, bare)]
        if not hits:
            raise UsageError(
                f"the pattern {pattern!r} fits no host",
                why=f"names of ssh_config: {', '.join(known[:10]) or 'none'}"
                + (f" and {len(known) - 10} more" if len(known) > 10 else ""),
                mend="name the hosts, or give them a Host line in ~/.ssh/config",
            )
        fits += hits
    return fits


def _ranges(text: str) -> Iterator[str]:
    """Yield every name that the ranges of `text` stand for."""
    pieces = _GROUP.split(text)
    choices = [
        [piece] if index % 2 == 0 else _numbers(piece, text) for index, piece in enumerate(pieces)
    ]
    if math.prod(map(len, choices)) > _RANGE_LIMIT:
        raise _bad_range(text, text)
    yield from map("".join, itertools.product(*choices))


def _numbers(group: str, text: str) -> list[str]:
    out: list[str] = []
    for span in group.split(","):
        found = _SPAN.fullmatch(span)
        first, last = (found[1], found[2] or found[1]) if found else ("1", "0")
        if not 0 <= int(last) - int(first) < _RANGE_LIMIT or len(first) > len(last):
            raise _bad_range(text, span)
        out += (f"{number:0{len(first)}}" for number in range(int(first), int(last) + 1))
    return out


def _bad_range(text: str, span: str) -> UsageError:
    return UsageError(
        f"{text!r} has a range that cannot be read: {span!r}",
        why=f"expected FIRST-LAST, growing, of at most {_RANGE_LIMIT} hosts",
        mend="patchq VERB -H 'gpu[01-64]'",
    )


def _matches(host: str, name: str) -> bool:
    """True where `name` means this host: as it is written, or without user and port."""
    if host.startswith(COMMAND):
        return host == name
    bare = re.sub(r":\d+$", "", host.rpartition("@")[2]) if host.count(":") < 2 else host
    return any(fnmatch.fnmatchcase(one, name) for one in (host, host.rpartition("@")[2], bare))
