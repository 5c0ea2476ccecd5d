"""Which hosts a command line means: lists, ranges, patterns, groups, exceptions.

One ``-H`` has parts between commas. A part may be a host (`patchq.transport.hosts`),
have ranges (``gpu[01-64]``, `patchq.inventory.ranges`), be a pattern over the names of the
inventory and of ssh_config (``gpu*``), a group (``@blackwell``, ``@rack*``), ``all`` for every
host of the inventory, or take hosts away again (``!gpu07``, ``!gpu[10-19]``, ``!*-old``,
``!@broken``). A ``command:`` is one host, whatever it holds.
"""

from __future__ import annotations

import difflib
import fnmatch
import itertools
import re
import shlex
from collections.abc import Container, Iterable, Mapping, Sequence

from patchq.errors import UsageError
from patchq.inventory.ranges import COMMAND, collapse, short
from patchq.inventory.ranges import expand as _ranges

__all__ = ["ALL", "COMMAND", "collapse", "expand", "forms", "group_names", "members", "nearest"]

# Every host of the inventory.
ALL = "all"
# More than this in a run is none that one machine should hold.
_RUN_LIMIT = 20_000
_PATTERN = re.compile(r"[*?]")
_GLOB = re.compile(r"[*?[]")
# A host's name has 253 characters at most.
_LONGEST = 1_000
# How many names an error tells.
_TOLD = 10

Groups = Mapping[str, Sequence[str]]


def expand(
    specs: Sequence[str], known: Sequence[str], groups: Groups | None = None
) -> tuple[str, ...]:
    """Return the hosts that `specs` name, each once, in the order of their first mention.

    `known` are the names that a pattern is held against; `groups` have hosts each, `ALL` is
    one of them; None where there is no inventory.

    Raises:
        UsageError: a range or list cannot be read, a pattern, a group or an exception fits
            nothing, or nothing is left.

    Example:
        >>> expand(["gpu[08-10],!gpu09", "root@db:2222"], [])
        ('gpu08', 'gpu10', 'root@db:2222')
        >>> expand(["@blackwell,!@broken"], [], {"blackwell": ["b1", "b2"], "broken": ["b2"]})
        ('b1',)
    """
    kept = members(specs, known, groups)
    if specs and not kept:
        raise _nothing(specs)
    return kept


def members(specs: Sequence[str], known: Sequence[str], groups: Groups | None) -> tuple[str, ...]:
    """Return the hosts of `expand`, maybe none."""
    found: dict[str, None] = {}
    taken: dict[str, None] = {}
    every: set[str] = set()  # what a group takes away need not be there
    left = _RUN_LIMIT
    for part in itertools.chain.from_iterable(map(_parts, specs)):
        names = _meant(part, known, groups)
        left -= len(names)
        if left < 0:
            raise _too_many()
        if not part.startswith("!"):
            found.update(dict.fromkeys(names))
        elif _is_group(part[1:]):
            every.update(names)
        else:
            taken.update(dict.fromkeys(names))
    if found:
        _check_taken(taken, found)
    patterns = [name for name in taken if _GLOB.search(name)]
    every.update(taken)
    if not every:
        return tuple(found)
    return tuple(host for host in found if not _is_taken(host, every, patterns))


def forms(host: str) -> tuple[str, ...]:
    """Return what a name may mean a host by: as it is written, or without user and port.

    Example:
        >>> forms("root@gpu1:2222")
        ('root@gpu1:2222', 'gpu1:2222', 'gpu1')
    """
    if host.startswith(COMMAND):
        return (host,)
    bare = re.sub(r":\d+$", "", host.rpartition("@")[2]) if host.count(":") < 2 else host
    return host, host.rpartition("@")[2], bare


def group_names(part: str, known: Groups | None) -> list[str]:
    """Return the names of the groups that ``@group`` names, by ranges or a pattern several.

    Raises:
        UsageError: there is no such group, or no inventory.

    Example:
        >>> group_names("@rack*", {"rack1": ["a"], "rack2": ["b"], "db": ["c"]})
        ['rack1', 'rack2']
    """
    if known is None:
        raise UsageError(
            f"{short(part)!r} names a group, and there is no inventory",
            why="no hosts.toml is in sight: not here or further up, not by PATCHQ_HOSTS",
            mend="patchq VERB --inventory FILE, or write a hosts.toml; see: patchq hosts --help",
        )
    found: dict[str, None] = {}
    for name in _ranges(part.removeprefix("@")):
        fits = [one for one in known if _fits(one, name)] if _PATTERN.search(name) else [name]
        if not fits or fits[0] not in known:
            near = nearest(name, known)
            raise UsageError(
                f"there is no group {short('@' + name)!r}",
                why=f"the groups are: {_few([*known])}",
                mend=f"patchq VERB -H @{near}" if near else "patchq hosts",
            )
        found.update(dict.fromkeys(fits))
    return [*found]


def nearest(name: str, among: Iterable[str]) -> str:
    """Return the name that comes nearest, for an error; empty where none comes near."""
    plain = re.sub(r"[*?!@]", "", name)[:_LONGEST]
    return next(iter(difflib.get_close_matches(plain, among, 1, 0.5)), "")


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


def _meant(part: str, known: Sequence[str], groups: Groups | None) -> list[str]:
    """Return the names that one part stands for; those of an exception are not looked up."""
    if part.startswith(COMMAND):
        return [_readable(part)]
    bare = part.removeprefix("!")
    if _is_group(bare):
        return _members(bare, groups)
    return [*_ranges(bare)] if part.startswith("!") else _named(part, known)


def _is_group(part: str) -> bool:
    return part == ALL or part.startswith("@")


def _members(part: str, known: Groups | None) -> list[str]:
    """Return the hosts of a group, of several by ranges or a pattern, or of all."""
    names = group_names(part, known)
    return [*dict.fromkeys(host for name in names for host in (known or {})[name])]


def _named(part: str, known: Sequence[str]) -> list[str]:
    names = list(_ranges(part))
    if not any(_PATTERN.search(name) for name in names):
        return names
    fits = []
    for pattern in names:
        user, at, bare = pattern.rpartition("@")
        hits = [user + at + name for name in known if _fits(name, bare)]
        if not hits:
            near = nearest(bare, known)
            raise UsageError(
                f"the pattern {pattern!r} fits no host",
                why=f"names of the inventory and of ssh_config: {_few(known)}"
                + (f"; {short(near)!r} comes nearest" if near else ""),
                mend="name the hosts, or give them a Host line in ~/.ssh/config",
            )
        fits += hits
    return fits


def _check_taken(taken: Iterable[str], found: Iterable[str]) -> None:
    """Raise an error for an exception that takes nothing away."""
    there = {form for host in found for form in forms(host)}
    for name in taken:
        if name not in there and not any(_fits(form, name) for form in there):
            near = nearest(name, found)
            raise UsageError(
                f"'!{short(name)}' takes away no host",
                why=f"named are: {_few([*found])}",
                mend=f"write '!{near}', or leave it out"
                if near
                else "name a host that is there, or leave it out",
            )


def _nothing(specs: Sequence[str]) -> UsageError:
    """Return the error for a selection that is empty."""
    parts = [part for spec in specs for part in _parts(spec)]
    named = [part for part in parts if not part.startswith("!")]
    if not named:
        why = "there are only exceptions, and nothing to take them from"
        return UsageError("no host is left", why=why, mend=f"patchq VERB -H all -H {specs[0]!r}")
    if len(named) == len(parts):
        return UsageError(
            "no host is meant",
            why=f"there is no host in {_few(named)}",
            mend="patchq hosts",
        )
    return UsageError(
        "no host is left",
        why=f"the exceptions take away all of {_few(named)}",
        mend="patchq VERB -H user@gpu1,gpu2",
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
            f"{short(part)!r} cannot be read as a command",
            why=f"it is split into words as a shell does it: {error}",
            mend="patchq VERB -H 'command:ssh user@gpu1'",
        ) from error
    return part


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - _TOLD} more" if len(names) > _TOLD else ""
    return (", ".join(map(short, names[:_TOLD])) or "none") + more


def _is_taken(host: str, taken: Container[str], patterns: Sequence[str]) -> bool:
    """Return whether an exception is about a host."""
    if any(form in taken for form in forms(host)):
        return True
    return any(_fits(form, name) for name in patterns for form in forms(host))


def _fits(host: str, pattern: str) -> bool:
    """Return whether a pattern is of some length, which is what fnmatch is for, and fits."""
    return len(pattern) <= _LONGEST and fnmatch.fnmatchcase(host, pattern)
