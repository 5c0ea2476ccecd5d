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
import shlex
from collections.abc import Container, Iterable, Iterator, Sequence

from patchq.errors import UsageError

COMMAND = "command:"
# More hosts than this in one range is a slip of the pen.
_RANGE_LIMIT = 10_000
# More than this in a run is none that one machine should hold.
_RUN_LIMIT = 20_000
# ``[01-64]``, ``[1,3-5]``; an IPv6 address in brackets has colons.
_GROUP = re.compile(r"\[([0-9,-]+)]")
_SPAN = re.compile(r"(\d{1,18})(?:-(\d{1,18}))?")
# The last number of a name; a port is none, nor is the part of an address.
_NUMBERED = re.compile(r"([^:.]*?)([0-9]{1,18})([^\d:.]*(?:\.[^:]*)?)")
_PATTERN = re.compile(r"[*?]")
_GLOB = re.compile(r"[*?[]")
# A host's name has 253 characters at most.
_LONGEST = 1_000
# How many names an error tells.
_TOLD = 10
# And how much of one.
_QUOTED = 200


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
    taken: dict[str, None] = {}
    left = _RUN_LIMIT
    for part in itertools.chain.from_iterable(map(_parts, specs)):
        if part.startswith(COMMAND):
            names = [_readable(part)]
        else:
            names = [*_ranges(part[1:])] if part.startswith("!") else _named(part, known)
        left -= len(names)
        if left < 0:
            raise _too_many()
        (taken if part.startswith("!") else found).update(dict.fromkeys(names))
    forms = {form for host in found for form in _forms(host)}
    for name in taken:
        if name not in forms and not any(_fits(form, name) for form in forms):
            raise UsageError(
                f"'!{name}' takes away no host",
                why=f"named are: {_few([*found])}",
                mend="name a host that is there, or leave it out",
            )
    patterns = [name for name in taken if _GLOB.search(name)]
    kept = [host for host in found if not _is_taken(host, taken, patterns)]
    if specs and not kept:
        raise UsageError(
            "no host is left",
            why=f"{_few(specs)} names {len(found)} and takes all of them away",
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
    parts, end, inside = [], len(spec), False
    for at in range(len(spec) - 1, -1, -1):
        if spec[at] in "[]":
            inside = spec[at] == "]"
        elif spec[at] == "," and not inside:
            parts.append(spec[at + 1 : end].strip())
            end = at
    parts = [spec[:end].strip(), *reversed(parts)]
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
        hits = [user + at + name for name in known if _fits(name, bare)]
        if not hits:
            raise UsageError(
                f"the pattern {pattern!r} fits no host",
                why=f"names of ssh_config: {_few(known)}",
                mend="name the hosts, or give them a Host line in ~/.ssh/config",
            )
        fits += hits
    return fits


def _ranges(text: str) -> Iterator[str]:
    """Yield every name that the ranges of `text` stand for."""
    choices: list[list[str]] = []
    for index, piece in enumerate(_GROUP.split(text)):
        choices.append([piece] if index % 2 == 0 else _numbers(piece, text))
        if math.prod(map(len, choices)) > _RANGE_LIMIT:
            raise _bad_range(text, text)
    yield from map("".join, itertools.product(*choices))


def _numbers(group: str, text: str) -> list[str]:
    out: list[str] = []
    for span in group.split(","):
        if len(out) > _RANGE_LIMIT:
            raise _bad_range(text, group)
        found = _SPAN.fullmatch(span)
        first, last = (found[1], found[2] or found[1]) if found else ("1", "0")
        if not 0 <= int(last) - int(first) < _RANGE_LIMIT or len(first) > len(last):
            raise _bad_range(text, span)
        out += (f"{number:0{len(first)}}" for number in range(int(first), int(last) + 1))
    return out


def _bad_range(text: str, span: str) -> UsageError:
    return UsageError(
        f"{_short(text)!r} has a range that cannot be read: {_short(span)!r}",
        why=f"expected FIRST-LAST, growing, of at most {_RANGE_LIMIT} hosts",
        mend="patchq VERB -H 'gpu[01-64]'",
    )


def _too_many() -> UsageError:
    return UsageError(
        f"more than {_RUN_LIMIT} hosts are named",
        why="one run reaches no more",
        mend="patchq VERB -H 'gpu[0001-9999]', and once more for the rest",
    )


def _readable(part: str) -> str:
    """Return a command, once it is known to be one that can be split into words."""
    try:
        if "\0" in part:
            raise ValueError("a NUL byte")
        shlex.split(part.removeprefix(COMMAND))
    except ValueError as error:
        raise UsageError(
            f"{_short(part)!r} cannot be read as a command",
            why=f"it is split into words as a shell does it: {error}",
            mend="patchq VERB -H 'command:ssh user@gpu1'",
        ) from error
    return part


def _short(text: str) -> str:
    return text if len(text) <= _QUOTED else f"{text[:_QUOTED]}..."


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - _TOLD} more" if len(names) > _TOLD else ""
    return (", ".join(map(_short, names[:_TOLD])) or "none") + more


def _is_taken(host: str, taken: Container[str], patterns: Sequence[str]) -> bool:
    """Return whether an exception is about a host."""
    forms = _forms(host)
    if any(form in taken for form in forms):
        return True
    return any(_fits(form, name) for name in patterns for form in forms)


def _fits(host: str, pattern: str) -> bool:
    """Return whether a pattern is of some length, which is what fnmatch is for, and fits."""
    return len(pattern) <= _LONGEST and fnmatch.fnmatchcase(host, pattern)


def _forms(host: str) -> tuple[str, ...]:
    """Return what a name may mean a host by: as it is written, or without user and port."""
    if host.startswith(COMMAND):
        return (host,)
    bare = re.sub(r":\d+$", "", host.rpartition("@")[2]) if host.count(":") < 2 else host
    return host, host.rpartition("@")[2], bare
