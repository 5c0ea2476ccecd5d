"""~/.ssh/config: read once per run, asked once per host.

Parsed here, and not by asyncssh, which reads the files anew for every connection
(300 ``Host`` blocks cost 42 ms each time) and skips what it does not know in
silence. As in ssh_config(5) the first value of an option counts, ``IdentityFile``
adds up, and ``Include`` is read in place. Known here: Host, Match (all, host,
originalhost, user, localuser), Include; which options are honoured and which are not
stands in `unheeded`. Host keys are always checked. An option that refuses connections
(`REFUSED`) is never skipped: it is an error that names ssh(1) as the way.
"""

from __future__ import annotations

import fnmatch
import functools
import glob
import heapq
import itertools
import os
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from patchq.errors import HostError, UsageError
from patchq.transport import regular

REFUSED = frozenset({"revokedhostkeys", "verifyhostkeydns"})
SYSTEM_FILE = Path("/etc/ssh/ssh_config")
_ADDING = frozenset({"identityfile", "certificatefile"})
# ssh(1) has the same bound for Include (READCONF_MAX_DEPTH).
_DEPTH = 16
_OPTION = re.compile(r"\s*(?P<key>\w+)(?:\s*=\s*|\s+|$)(?P<rest>.*)")


@dataclass(frozen=True, slots=True)
class Condition:
    """One criterion of a ``Host`` or ``Match`` line; `negated` as in ``Match !host``."""

    subject: str
    patterns: tuple[str, ...]
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Block:
    """Options that count where all conditions hold, in the order of the files.

    `system` where the system's file has it, and not the user's. `place` is the ``Host`` or
    ``Match`` line that begins it, a file and a number from 1; None for what comes before any.
    """

    conditions: tuple[Condition, ...]
    options: tuple[tuple[str, tuple[str, ...]], ...]
    system: bool = False
    place: tuple[Path, int] | None = None


@dataclass(frozen=True, slots=True)
class _Line:
    """A line of a block: an option, or None for the line that begins the block."""

    conditions: tuple[Condition, ...]
    place: tuple[Path, int] | None
    option: tuple[str, tuple[str, ...]] | None = None


# Criteria that are decided here.
_SUBJECTS = frozenset({"all", "host", "originalhost", "user", "localuser"})


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a host while the blocks are asked."""

    original: str
    user: str | None
    local_user: str


@dataclass(frozen=True)
class Config:
    """All blocks of the user's file and the system's, in order."""

    blocks: tuple[Block, ...] = ()

    @functools.cached_property
    def _index(self) -> tuple[dict[str, list[int]], list[int]]:
        """Blocks for hosts by name, and the numbers of all others: a thousand are usual."""
        named: dict[str, list[int]] = {}
        others: list[int] = []
        for number, block in enumerate(self.blocks):
            names = next(
                (set(each.patterns) for each in block.conditions if _is_plain(each)), None
            )
            for name in names or ():
                named.setdefault(name.lower(), []).append(number)
            if names is None:
                others.append(number)
        return named, others

    @property
    def names(self) -> tuple[str, ...]:
        """The hosts that ``Host`` lines name, without patterns, in their order."""
        return tuple(self.places)

    @functools.cached_property
    def places(self) -> dict[str, tuple[Path, int]]:
        """The hosts of `names`, each with the first line that names it."""
        found = [
            (name, block.place)
            for block in self.blocks
            for condition in block.conditions
            if condition.subject == "originalhost" and not condition.negated
            for name in condition.patterns
            if block.place is not None and not set(name) & set("*?!")
        ]
        first = dict(reversed(found))
        return {name: first[name] for name, _ in found}

    def options(self, facts: Facts) -> dict[str, tuple[str, ...]]:
        """Return the options for one host, keys in lower case, tokens not expanded.

        Raises:
            UnsupportedOption: an option applies that must not be skipped.
        """
        found: dict[str, tuple[str, ...]] = {}
        for block, undecided in self.applying(facts, found):
            for key, values in () if undecided else block.options:
                if key in _ADDING:
                    found[key] = found.get(key, ()) + values
                else:
                    found.setdefault(key, values)
        for key in REFUSED & found.keys():
            if found[key][0].lower() not in ("none", "no"):
                raise _unsupported(facts.original, key)
        return found

    def applying(
        self, facts: Facts, found: dict[str, tuple[str, ...]] | None = None
    ) -> Iterator[tuple[Block, str]]:
        """Yield the blocks that apply to a host, in order.

        Each comes with the criterion that cannot be decided here (exec, final ...), if it
        has one; such a block counts for nothing. `found` is what the options before say: who
        keeps it adds to it in between.
        """
        if found is None:
            found = self.options(facts)
        named, others = self._index
        for number in heapq.merge(named.get(facts.original.lower(), ()), others):
            block = self.blocks[number]
            decided = [each for each in block.conditions if each.subject in _SUBJECTS]
            if all(_holds(condition, facts, found) for condition in decided):
                open_ = [each.subject for each in block.conditions if each not in decided]
                yield block, open_[0] if open_ else ""


class BadConfig(UsageError):
    """A file of ssh_config cannot be read."""


class UnsupportedOption(HostError):
    """ssh_config asks for a check that patchq's own SSH does not make."""


def read(user_file: Path, system_file: Path | None = SYSTEM_FILE) -> Config:
    """Return what the files say; a file that is not there says nothing.

    Raises:
        BadConfig: a file has a line that cannot be parsed.
    """
    found: list[Block] = []
    for path in (user_file, system_file):
        if path is not None and path.is_file():
            lines = _lines(path, path.parent, _Line((), None), 0)
            found += (
                _block(list(each), path is system_file)
                for _, each in itertools.groupby(lines, lambda one: (one.place, one.conditions))
            )
    return Config(tuple(found))


def matches(patterns: Sequence[str], name: str) -> bool:
    """Return whether an ssh pattern list matches; one that starts with ``!`` forbids."""
    forbidden = any(_match(pattern[1:], name) for pattern in patterns if pattern[:1] == "!")
    return not forbidden and any(_match(p, name) for p in patterns if p[:1] != "!")


def _block(lines: Sequence[_Line], system: bool) -> Block:
    options = tuple(one.option for one in lines if one.option is not None)
    return Block(lines[0].conditions, options, system, lines[0].place)


def _lines(path: Path, folder: Path, outer: _Line, depth: int) -> Iterator[_Line]:
    """Yield the lines of a file and of those that it includes; `outer` is what includes it."""
    now = outer
    for number, line in enumerate(_text(path).split("\n"), 1):
        where = f"{path}:{number}"
        if "\0" in line:
            raise _bad(where, "it has a NUL byte")
        key, values = _option(line, where)
        if not key:
            continue
        if key in ("host", "match"):
            named = key == "host"
            more = [Condition("originalhost", values)] if named else _criteria(values, where)
            now = _Line((*outer.conditions, *more), (path, number))
            yield now
        elif key == "include" and depth < _DEPTH:
            for value in values:
                pattern = os.path.join(folder, os.path.expanduser(value))
                for name in sorted(glob.glob(pattern)):
                    yield from _lines(Path(name), folder, now, depth + 1)
        else:
            yield replace(now, option=(key, values))


def _text(path: Path) -> str:
    try:
        return regular.text(path)
    except OSError as error:
        raise BadConfig(
            f"{path} cannot be read", why=str(error.strerror), mend=f"ls -l {path}"
        ) from error


def _option(line: str, where: str) -> tuple[str, tuple[str, ...]]:
    if not line.strip() or line.lstrip().startswith("#"):
        return "", ()
    found = _OPTION.fullmatch(line.rstrip())
    if found is None:
        raise _bad(where, f"{line.strip()!r} is not an option")
    key, rest = found["key"].lower(), found["rest"]
    if key == "proxycommand":
        return key, (rest,)
    try:
        values = shlex.split(rest, comments=True)
    except ValueError as error:
        raise _bad(where, str(error)) from error
    if not values:
        raise _bad(where, f"{found['key']} has no value")
    return key, tuple(values)


def _criteria(words: Sequence[str], where: str) -> Iterator[Condition]:
    rest = list(words)
    while rest:
        word = rest.pop(0)
        name = word.lstrip("!").lower()
        if name in ("all", "canonical", "final"):
            yield Condition(name, (), word[0] == "!")
        elif rest:
            yield Condition(name, tuple(rest.pop(0).split(",")), word[0] == "!")
        else:
            raise _bad(where, f"Match {word} has no value")


def _is_plain(condition: Condition) -> bool:
    """Return whether a condition names hosts, and no pattern of hosts."""
    if condition.subject != "originalhost" or condition.negated:
        return False
    return not any(set(name) & set("*?!") for name in condition.patterns)


def _holds(condition: Condition, facts: Facts, found: dict[str, tuple[str, ...]]) -> bool:
    user = facts.user or found.get("user", (facts.local_user,))[0]
    host = found.get("hostname", (facts.original,))[0].replace("%h", facts.original)
    subjects = {
        "host": host,
        "originalhost": facts.original,
        "user": user,
        "localuser": facts.local_user,
    }
    if condition.subject == "all":
        return not condition.negated
    return matches(condition.patterns, subjects[condition.subject]) != condition.negated


def _match(pattern: str, name: str) -> bool:
    if not set(pattern) & set("*?"):  # most are names: 1 ms less than a pattern of its own
        return pattern.lower() == name.lower()
    # ssh patterns know * and ? only: a bracket is literal.
    plain = pattern.lower().replace("[", "[[]")
    return fnmatch.fnmatchcase(name.lower(), plain)


def _bad(where: str, why: str) -> BadConfig:
    return BadConfig(f"{where} cannot be read", why=why, mend="man ssh_config")


def _unsupported(name: str, key: str) -> UnsupportedOption:
    return UnsupportedOption(
        f"ssh_config sets {key} for {name}, which patchq's own SSH does not check",
        why="skipping it would connect where ssh(1) refuses",
        mend=f"patchq -H 'command:ssh {name}' ..., which goes through ssh(1)",
    )
