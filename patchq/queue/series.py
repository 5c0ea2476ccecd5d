"""The file `series`: which patches, in which order, with which options.

The format is quilt's (0.66, scripts/patchfns ``cat_series`` and ``patch_args``),
one patch a line::

    # a comment, from column 0 on
    NAME [-pN] [-R] [# comment]

NAME is relative to the folder of `series` and ends at the first space or tab;
``#`` begins a comment at column 0 or behind white space. ``-p1`` is what a line
without ``-p`` means. Lines are kept as they are: `SeriesFile.to_bytes` gives the
bytes back that `parse` read, and a CR before the newline is no part of a line.
Version 1; quilt itself reads every file that `parse` accepts and that has no CR.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from patchq.engine import lines
from patchq.errors import PatchqError
from patchq.model import safe_path

_COMMENT = re.compile(r"(?:^|[ \t])#(.*)")
_SPACE = re.compile(r"[ \t]+")
_MOST = 10_000
_STRIP = re.compile(r"-p([0-9]{1,3})")
_PACKED = (".gz", ".bz2", ".xz", ".lzma", ".lz", ".zst")


class SeriesError(PatchqError):
    """A line of a series that says nothing that quilt would understand."""


@dataclass(frozen=True, slots=True)
class SeriesEntry:
    """One patch of a series; `line` counts from 1."""

    name: str
    strip: int = 1
    reverse: bool = False
    comment: str = ""
    line: int = 0

    @property
    def options(self) -> str:
        """The options in one spelling, without the default."""
        return options(self.strip, self.reverse)


@dataclass(frozen=True, slots=True)
class SeriesFile:
    """A series as it is on disk, and what it says."""

    lines: tuple[bytes, ...]
    entries: tuple[SeriesEntry, ...]

    def to_bytes(self) -> bytes:
        """Return the file, byte for byte."""
        return b"".join(self.lines)


def options(strip: int, reverse: bool) -> str:
    """Return a patch's options as a series has them; ``-p1`` goes without saying.

    Example:
        >>> options(0, True)
        '-p0 -R'
    """
    return " ".join([f"-p{strip}"] * (strip != 1) + ["-R"] * reverse)


def parse(data: bytes, *, name: str = "series") -> SeriesFile:
    """Return what a series says; `name` is for messages.

    Raises:
        SeriesError: an unknown option, or a patch that is listed twice.
        UnsafePath: a patch outside of the series' folder.

    Example:
        >>> [entry.name for entry in parse(b"# mine\\na.patch -p0\\nb.patch\\n").entries]
        ['a.patch', 'b.patch']
    """
    raw = lines.split(data)
    seen: dict[str, SeriesEntry] = {}
    for number, line in enumerate(raw, 1):
        entry = _entry(lines.decode(line).removesuffix("\n").removesuffix("\r"), number, name)
        if entry is None:
            continue
        if len(seen) == _MOST:
            raise SeriesError(
                f"{name}:{number}: a series has at most {_MOST:,} patches",
                why="each is read, judged and recorded",
                mend="split the queue, or fold patches into one",
            )
        if entry.name in seen:
            raise SeriesError(
                f"{name}:{number}: {entry.name} is listed twice",
                why=f"line {seen[entry.name].line} has it, too; a patch is applied once",
                mend=f"take one of the two lines out of {name}",
            )
        seen[entry.name] = entry
    return SeriesFile(tuple(raw), tuple(seen.values()))


def named(name: str, what: str) -> str:
    """Return the name of a new patch, where a series can have it; `what` is for messages.

    Raises:
        SeriesError: it would read as something else, or is a file's of the queue itself.
        UnsafePath: it leads out of the series' folder.
    """
    found: tuple[SeriesEntry, ...] = ()
    if not name.startswith("-") and not re.search(r"\s", name):
        found = parse(f"{name}\n".encode("utf-8", "surrogateescape"), name=what).entries
    own = name in ("series", "series.lock") or name.endswith(".pyi")
    if [one.name for one in found] == [name] and not own:
        return name
    raise SeriesError(
        f"{name!r} can not be {what}",
        why="a name is one word, without # at its start; "
        "series, series.lock and *.pyi are the queue's own",
        mend="choose another, such as 10-fix.patch",
    )


def _entry(text: str, number: int, source: str) -> SeriesEntry | None:
    """Return what one line says, None for a comment or a blank one."""
    if text.startswith("#") or not text.strip(" \t"):
        return None
    if text.lstrip(" \t").startswith("#"):
        raise SeriesError(
            f"{source}:{number}: quilt would look for a patch named {text.split()[0]!r} here",
            why="for quilt a comment line begins with # at column 0",
            mend=f"take the spaces before the # out of {source}",
        )
    comment = _COMMENT.search(text)
    name, *words = _SPACE.split(text[: comment.start() if comment else None].strip(" \t"))
    return SeriesEntry(
        _checked(name, f"{source}:{number}"),
        *_options(words, f"{source}:{number}"),
        comment[1].strip() if comment else "",
        number,
    )


def _checked(name: str, where: str) -> str:
    """Return a patch's name, which must lie in the series' folder and be plain text."""
    if name.endswith(_PACKED):
        raise SeriesError(
            f"{where}: {name} is compressed",
            why="patchq reads patches as plain text, so that git can show their history",
            mend=f"unpack {name} and correct its line in the series",
        )
    return safe_path(name, source=where)


def _options(words: list[str], where: str) -> tuple[int, bool]:
    """Return what the options of a line say: ``-pN`` and ``-R``, once each."""
    strip, reverse = 1, False
    seen: set[str] = set()
    for word in words:
        number = _STRIP.fullmatch(word)
        kind = "-pN" if number else word
        if kind not in seen and number:
            strip = int(number[1])
        elif kind not in seen and word == "-R":
            reverse = True
        else:
            raise SeriesError(
                f"{where}: the option {word!r} is unknown, or given twice",
                why="a line of a series is NAME [-pN] [-R] [# comment]",
                mend="correct the line; a comment needs a # before it",
            )
        seen.add(kind)
    return strip, reverse
