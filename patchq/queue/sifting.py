"""Which files of a foreign patch are meant: how many folders to strip, what to leave out.

A repository has more than its wheel, and may have it elsewhere (``src/pkg``,
``python/pkg``). What the release ships decides: the ``-p`` with which most changed files
are there, and of new files most lie in its packages. Files that it does not ship are left out
and named. What would be missed is refused unless it is left out on demand: compiled
sources, since nothing here builds them, and modules of the package that this release lacks.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from patchq.agent import protocol
from patchq.engine.cuts import Cut
from patchq.errors import PatchqError, UsageError

# Compiled before the package is installed; some packages ship the first kind and build it later.
_SHIPPED_SOURCES = (
    ".c",
    ".cc",
    ".cpp",
    ".cxx",
    ".cu",
    ".cuh",
    ".h",
    ".hh",
    ".hpp",
    ".hip",
    ".inl",
)
_SOURCES = (*_SHIPPED_SOURCES, ".pyx", ".pxd", ".pxi", ".rs", ".go", ".cmake", ".f90")
_BUILD = re.compile(r"(.*/)?(csrc/.*|CMakeLists\.txt|Cargo\.toml|meson\.build)")
_EXTENSION = re.compile(rb"[-+].*(ext_modules|Extension\(|cythonize|CMakeExtension|csrc)")
_TEST = re.compile(r"(.*/)?(tests?/.*|testing/.*|test_[^/]*\.py|[^/]*_test\.py|conftest\.py)")


# Folders that may have to be stripped.
_DEEPEST = 32


@dataclass(frozen=True, slots=True)
class Shipped:
    """What a release installs: its paths, and their folders."""

    paths: frozenset[str]
    folders: frozenset[str]

    @classmethod
    def of(cls, paths: Iterable[str]) -> Shipped:
        """Return what a release ships that installs `paths`."""
        whole = frozenset(path for path in paths if ".dist-info/" not in path)
        return cls(whole, frozenset(folder for path in whole for folder in above(path)))

    def with_paths(self, paths: Iterable[str]) -> Shipped:
        """Return the same with files that a patch made."""
        more = frozenset(paths)
        folders = (folder for path in more for folder in above(path))
        return Shipped(self.paths | more, self.folders.union(folders))

    def in_package(self, path: str | None) -> bool:
        """Return whether a path lies in a top folder that is the release's."""
        return path is not None and "/" in path and path.split("/")[0] in self.folders


@dataclass(frozen=True, slots=True)
class Sifted:
    """The files that are meant, and the names of those left out: unasked, and on demand.

    `refused`: names that may not be left out in silence, each with the reason.
    """

    kept: tuple[Cut, ...]
    left: tuple[str, ...]
    asked: tuple[str, ...]
    refused: tuple[str, ...]


class CompiledSource(PatchqError):
    """A patch changes what must be compiled, or modules that the release does not have."""


def above(path: str) -> Iterator[str]:
    """Yield every folder that a path lies in."""
    yield from (path[:at] for at, char in enumerate(path) if char == "/")


def stripped(name: str | None, strip: int) -> str | None:
    """Return a name without its first folders, None where it has too few."""
    parts = [] if name is None else name.split("/", strip)[strip:]
    return parts[0] if parts and parts[0] else None


def candidates(cuts: Sequence[Cut]) -> tuple[str, ...]:
    """Return every path that the names of a patch may mean, however much is stripped."""
    names = dict.fromkeys(name for one in cuts for name in (one.old, one.new) if name is not None)
    every = (
        stripped(name, strip)
        for name in names
        for strip in range(min(name.count("/"), _DEEPEST) + 1)
    )
    return tuple(dict.fromkeys(path for path in every if path and not protocol.unsafe(path)))


def level(
    cuts: Sequence[Cut],
    shipped: Shipped,
    *,
    source: str,
    where: str,
    command: Callable[[str], str],
) -> tuple[int, str]:
    """Return the ``-p`` of a patch, and what is to be said of it where it is not 1.

    `command` gives the command to type for the same with other options.

    Raises:
        UsageError: with no number, or with more than one, the files are the release's.
    """
    deepest = max(
        (name.count("/") for one in cuts for name in (one.old, one.new) if name), default=0
    )
    scores = {strip: _score(cuts, shipped, strip) for strip in range(min(deepest, _DEEPEST) + 1)}
    best = max(scores.values(), default=(0, 0))
    fits = [strip for strip, score in scores.items() if score == best]
    if best == (0, 0):
        names = sorted({one.name for one in cuts})
        raise UsageError(
            f"no file of {source} is a file of {where}",
            why=f"it changes {_listed(names)}; no number of leading folders stripped helps",
            mend="see that it is a patch for this distribution",
        )
    if len(fits) > 1:
        name = _example(cuts, shipped, fits[1])
        read = " or ".join(f"{stripped(name, strip)} (-p{strip})" for strip in fits[:2])
        raise UsageError(
            f"{source} fits with {' and with '.join(f'-p{strip}' for strip in fits)}",
            why=f"{name} may mean {read}, and {where} has both",
            mend=command(f" -p{fits[0]}"),
        )
    if fits[0] == 1:
        return 1, ""
    name = _example(cuts, shipped, fits[0])
    return fits[0], f"-p{fits[0]}: {name} is {stripped(name, fits[0])} in {where}"


def sift(
    cuts: Sequence[Cut],
    rows: Sequence[bytes],
    shipped: Shipped,
    strip: int,
    leave_out: Sequence[str],
) -> Sifted:
    """Return which files of a patch are meant; `rows` are its lines."""
    kept: list[Cut] = []
    left, asked, refused = [], [], []
    for one in cuts:
        name = _repository(one)
        if any(fnmatchcase(known, glob) for known in _names(one, strip) for glob in leave_out):
            asked.append(name)
        elif why := _missed(one, rows, shipped, strip):
            refused.append(f"{name}: {why}")
        elif _meant(one, shipped, strip):
            kept.append(one)
        else:
            left.append(name)
    return Sifted(tuple(kept), tuple(left), tuple(asked), tuple(refused))


def refusal(
    refused: Sequence[str], *, source: str, where: str, command: Callable[[str], str]
) -> CompiledSource:
    """Return the error for files that may not be left out in silence."""
    names = dict.fromkeys(line.partition(": ")[0] for line in refused)
    globs = "".join(f" --leave-out {shlex.quote(name)}" for name in names)
    return CompiledSource(
        f"{source} changes what a patch of {where} cannot",
        why="\n".join(dict.fromkeys(refused)),
        mend=f"build the package anew; where the rest is right alone: {command(globs)}",
    )


def matched(cuts: Sequence[Cut], leave_out: Sequence[str], *, source: str) -> None:
    """Refuse a pattern to leave files out that leaves none out.

    Raises:
        UsageError: no file of the patch matches.
    """
    names = [name for one in cuts for name in _names(one, 1)]
    for glob in leave_out:
        if not any(fnmatchcase(name, glob) for name in names):
            raise UsageError(
                f"--leave-out {glob} leaves nothing out",
                why=f"the files of {source} are {_listed(sorted({_repository(c) for c in cuts}))}",
                mend="name a file, or quote a pattern: --leave-out 'csrc/*'",
            )


def _example(cuts: Sequence[Cut], shipped: Shipped, strip: int) -> str:
    """Return a name of the patch that is the release's."""
    one = next(one for one in cuts if _known(one, shipped, strip))
    names = [name for name in (one.new, one.old) if name is not None]
    return next((n for n in names if stripped(n, strip) in shipped.paths), names[0])


def _score(cuts: Sequence[Cut], shipped: Shipped, strip: int) -> tuple[int, int]:
    """Return how many changed files are the release's, and how many new ones may be."""
    known = sum(_known(one, shipped, strip) for one in cuts if one.old is not None)
    fresh = sum(_known(one, shipped, strip) for one in cuts if one.old is None)
    return known, fresh


def _known(one: Cut, shipped: Shipped, strip: int) -> bool:
    if one.old is None:
        return shipped.in_package(stripped(one.new, strip))
    return any(stripped(name, strip) in shipped.paths for name in (one.old, one.new))


def _meant(one: Cut, shipped: Shipped, strip: int) -> bool:
    """Return whether a file's diff is about something that the release ships, or could."""
    path = stripped(one.new, strip)
    if one.old is None and path is not None and _TEST.fullmatch(path):
        return path.rpartition("/")[0] in shipped.folders
    return _known(one, shipped, strip)


def _missed(one: Cut, rows: Sequence[bytes], shipped: Shipped, strip: int) -> str:
    """Return why a file may not be left out in silence, or kept; empty if it may."""
    old, new = (stripped(name, strip) for name in (one.old, one.new))
    path = new or old or one.name
    there = old in shipped.paths or new in shipped.paths
    if _TEST.fullmatch(path) and not there:
        return ""
    if path.endswith(_SHIPPED_SOURCES) and (there or _beside(path, shipped)):
        return ""
    if path.endswith(_SOURCES) or (_BUILD.fullmatch(path) and not there):
        return "it is compiled when the package is built, and would change nothing"
    if path.rpartition("/")[2] == "setup.py" and any(
        _EXTENSION.match(row) for row in rows[one.start : one.end]
    ):
        return "it changes how the package's extensions are built"
    if one.old is None or there or not path.endswith((".py", ".pyi")):
        return ""
    if shipped.in_package(old) or shipped.in_package(new):
        return "it lies in the package, and this release does not have it"
    return ""


def _beside(path: str, shipped: Shipped) -> bool:
    """Return whether a folder ships sources of this kind, as packages do that compile late."""
    folder, suffix = path.rpartition("/")[0], "." + path.rpartition(".")[2]
    return any(one.endswith(suffix) and one.rpartition("/")[0] == folder for one in shipped.paths)


def _names(one: Cut, strip: int) -> set[str]:
    """Return the names by which a pattern may mean a file."""
    names = {name for name in (one.old, one.new) if name is not None}
    shorter = {stripped(name, at) for name in names for at in (1, strip)}
    return names | {name for name in shorter if name is not None}


def _repository(one: Cut) -> str:
    """Return a file's name as its repository has it, without git's ``a/`` or ``b/``."""
    name = one.name
    return name[2:] if name.startswith(("a/", "b/")) else name


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return ", ".join(names[:5]) + more
