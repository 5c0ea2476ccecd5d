"""Names with ranges: ``gpu[01-64]``, ``gpu[1,5-8]n[1-2]``; leading zeros are kept."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Iterator

from patchq.errors import UsageError

COMMAND = "command:"
# More hosts than this in one range is a slip of the pen.
_RANGE_LIMIT = 10_000
# ``[01-64]``, ``[1,3-5]``; an IPv6 address in brackets has colons.
_GROUP = re.compile(r"\[([0-9,-]+)]")
_SPAN = re.compile(r"(\d{1,18})(?:-(\d{1,18}))?")
# The last number of a name; a port is none, nor is the part of an address.
_NUMBERED = re.compile(r"([^:.]*?)([0-9]{1,18})([^\d:.]*(?:\.[^:]*)?)")
# How much of a name an error tells.
_QUOTED = 200


def expand(text: str) -> Iterator[str]:
    """Yield every name that the ranges of `text` stand for.

    Raises:
        UsageError: a range cannot be read, or stands for too many.

    Example:
        >>> list(expand("gpu[08-10]n[1,3]"))
        ['gpu08n1', 'gpu08n3', 'gpu09n1', 'gpu09n3', 'gpu10n1', 'gpu10n3']
    """
    choices: list[list[str]] = []
    for index, piece in enumerate(_GROUP.split(text)):
        choices.append([piece] if index % 2 == 0 else _numbers(piece, text))
        if math.prod(map(len, choices)) > _RANGE_LIMIT:
            raise _bad_range(text, text)
    yield from map("".join, itertools.product(*choices))


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


def short(text: str) -> str:
    """Return as much of a name as an error tells."""
    return text if len(text) <= _QUOTED else f"{text[:_QUOTED]}..."


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
        f"{short(text)!r} has a range that cannot be read: {short(span)!r}",
        why=f"expected FIRST-LAST, growing, of at most {_RANGE_LIMIT} hosts",
        mend="patchq VERB -H 'gpu[01-64]'",
    )
