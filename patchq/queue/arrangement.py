"""The order of a series, changed: its other lines, comments too, stay as they are.

Pure: a `SeriesFile` in, another one out.
"""

from __future__ import annotations

import re
from dataclasses import replace

from patchq.engine import lines
from patchq.queue import series
from patchq.queue.series import SeriesEntry, SeriesFile

EMPTY = SeriesFile((), ())


def inserted(file: SeriesFile, entry: SeriesEntry, after: str | None) -> SeriesFile:
    r"""Return a series with a patch more: behind `after`, or as the first one for None.

    Example:
        >>> inserted(series.parse(b"a\nb\n"), SeriesEntry("n", 0), "a").to_bytes()
        b'a\nn -p0\nb\n'
    """
    rows = list(file.lines)
    if rows and not rows[-1].endswith(b"\n"):
        rows[-1] += b"\n"
    at = len(rows)
    if after is not None:
        at = _row(file, after)
    elif file.entries:
        at = file.entries[0].line - 1
    return _parsed([*rows[:at], _line(entry), *rows[at:]])


def removed(file: SeriesFile, name: str) -> SeriesFile:
    """Return a series without a patch; its line goes, with the comment on it."""
    at = _row(file, name) - 1
    return _parsed([*file.lines[:at], *file.lines[at + 1 :]])


def renamed(file: SeriesFile, old: str, new: str) -> SeriesFile:
    """Return a series in which a patch has another name, its options and comment the same."""
    at = _row(file, old) - 1
    line = lines.encode(
        re.sub(
            r"^([ \t]*)\S+", lambda found: found[1] + new, lines.decode(file.lines[at]), count=1
        )
    )
    return _parsed([*file.lines[:at], line, *file.lines[at + 1 :]])


def optioned(file: SeriesFile, name: str, strip: int, reverse: bool) -> SeriesFile:
    """Return a series in which a patch has other options."""
    at = _row(file, name) - 1
    old = next(one for one in file.entries if one.name == name)
    line = _line(replace(old, strip=strip, reverse=reverse))
    return _parsed([*file.lines[:at], line, *file.lines[at + 1 :]])


def reordered(file: SeriesFile, names: tuple[str, ...]) -> SeriesFile:
    """Return a series whose patches stand in another order; other lines stay where they are.

    `names` are all its patches; each takes its own options and comment along.
    """
    by_name = {one.name: file.lines[one.line - 1] for one in file.entries}
    assert sorted(names) == sorted(by_name)
    rows = [row if row.endswith(b"\n") else row + b"\n" for row in file.lines]
    for entry, name in zip(file.entries, names, strict=True):
        line = by_name[name]
        rows[entry.line - 1] = line if line.endswith(b"\n") else line + b"\n"
    return _parsed(rows)


def _row(file: SeriesFile, name: str) -> int:
    """Return the number of the line that names a patch, counted from 1."""
    return next(one.line for one in file.entries if one.name == name)


def _line(entry: SeriesEntry) -> bytes:
    words = [entry.name, entry.options, f"# {entry.comment}" if entry.comment else ""]
    return lines.encode(" ".join(word for word in words if word) + "\n")


def _parsed(rows: list[bytes]) -> SeriesFile:
    return series.parse(b"".join(rows))


def next_name(name: str) -> str:
    """Return the name of a patch's next version, as quilt counts them.

    Example:
        >>> next_name("fix.patch"), next_name("fix-2.patch"), next_name("fix")
        ('fix-2.patch', 'fix-3.patch', 'fix-2')
    """
    base, number, end = _version(name)
    return f"{base}-{2 if number is None else number + 1}{end}"


def previous_names(name: str) -> tuple[str, ...]:
    """Return the names whose next version has this one.

    Example:
        >>> previous_names("fix-2.patch"), previous_names("fix-3"), previous_names("fix")
        (('fix.patch', 'fix-1.patch'), ('fix-2',), ())
    """
    base, number, end = _version(name)
    if number is None or number < 1:
        return ()
    before = (f"{base}-{number - 1}{end}",)
    found = (f"{base}{end}", *before) if number == 2 else before
    return tuple(one for one in found if next_name(one) == name)


def _version(name: str) -> tuple[str, int | None, str]:
    """Return a patch's name without its version, that version, and the ending."""
    end = next((one for one in (".patch", ".diff") if name.endswith(one)), "")
    found = re.fullmatch(r"(.*)-([0-9]+)", name.removesuffix(end))
    return (found[1], int(found[2]), end) if found else (name.removesuffix(end), None, end)
