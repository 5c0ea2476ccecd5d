"""A patch's text cut into its files, before anything in it is judged.

`patchq.engine.diff` reads a patch whole or refuses it. Of a foreign patch only some
files may be wanted: here each file's lines and names are found, of binary files, links
and copies too, so that those that are left out need not be understood. Hunks are
skipped by their counts, so that a line which looks like a name is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from patchq.engine import cquote, fileheader, lines, stamps

_HUNK = re.compile(rb"@@ -\d+(?:,(\d{1,9}))? \+\d+(?:,(\d{1,9}))? @@")
_PREAMBLE = re.compile(rb"Index: |={10,}|diff -|RCS file: |retrieving revision |\r?$")
_BINARY = re.compile(r"Binary files? (.+) and (.+) differ\r?$")
_LONGEST = 4096  # PATH_MAX
_MERGED = (b"diff --cc ", b"diff --combined ")
_EXTENDED = tuple(
    f"{word} ".encode()
    for word in (
        *("old mode", "new mode", "deleted file mode", "new file mode", "index"),
        *("similarity index", "dissimilarity index"),
        *("rename from", "rename to", "copy from", "copy to"),
    )
)
# What ends the lines of a binary diff, which have no blanks.
_BEYOND = (b"diff ", b"-- ", b"commit ", b"From ")
_SAID = re.compile(rb"(rename from|rename to|copy from|copy to|new file|deleted file)\b ?(.*)")


@dataclass(frozen=True, slots=True)
class Cut:
    """One file's diff: lines [start, end), of which those from `last` on are no diff.

    `old` and `new` are the names as they are written, None where the file is absent.
    `returns` is true where its own lines end in CR LF.
    """

    start: int
    end: int
    last: int
    old: str | None
    new: str | None
    binary: bool = False
    returns: bool = False

    @property
    def name(self) -> str:
        """The name to call it by."""
        return self.new or self.old or ""


def cut(rows: Sequence[bytes], *, source: str) -> tuple[Cut, ...]:
    r"""Return the files of a patch, in order; none for a text without a diff.

    `source` is for messages.

    Raises:
        PatchFormatError: a merge's combined diff, which has no one file to go on.

    Example:
        >>> cut([b"--- a/x\n", b"+++ b/x\n", b"@@ -1 +1 @@\n", b"-1\n", b"+2\n"], source="")
        (Cut(start=0, end=5, last=5, old='a/x', new='b/x', binary=False, returns=False),)
    """
    found = list(_cuts(rows, source))
    ends = [*(one.start for one in found), len(rows)][1:]
    return tuple(
        Cut(one.start, end, one.last, one.old, one.new, one.binary, one.returns)
        for one, end in zip(found, ends, strict=True)
    )


def _cuts(rows: Sequence[bytes], source: str) -> Iterator[Cut]:
    """Yield each file's cut; its end is set later."""
    at = floor = 0
    while at < len(rows):
        row = rows[at]
        if row.startswith(_MERGED):
            raise fileheader.PatchFormatError(
                f"{source}:{at + 1}: this is the combined diff of a merge",
                why="it has two old sides, and only a diff against one can be applied",
                mend="make it with git show --first-parent -m, or git diff OLD NEW",
            )
        found = None
        if row.startswith(b"diff --git "):
            found = _git(rows, at)
        elif _marks(rows, at):
            found = _plain(rows, at, floor)
        elif match := _BINARY.match(lines.decode(row)):
            old, new = (None if name == fileheader.NULL else name for name in match.groups())
            found = Cut(_above(rows, at, floor), at + 1, at + 1, old, new, binary=True)
        if found is not None:
            yield found
            at = floor = found.last
        else:
            at += 1


def _marks(rows: Sequence[bytes], at: int) -> bool:
    """Return whether the ``---`` line of a file stands here."""
    marks = zip(rows[at : at + 3], (b"--- ", b"+++ ", b"@@ -"), strict=False)
    return at + 2 < len(rows) and all(row.startswith(mark) for row, mark in marks)


def _above(rows: Sequence[bytes], at: int, floor: int) -> int:
    """Return where the lines begin that announce a plain diff: ``Index:`` and the like."""
    start = at
    while start > floor and _PREAMBLE.match(rows[start - 1]):
        start -= 1
    while start < at and not rows[start].strip():
        start += 1
    return start


def _plain(rows: Sequence[bytes], at: int, floor: int) -> Cut:
    returns = rows[at].endswith(b"\r\n")
    names = _marked(rows[at]), _marked(rows[at + 1])
    return Cut(_above(rows, at, floor), at, _hunks(rows, at + 2), *names, returns=returns)


def _git(rows: Sequence[bytes], start: int) -> Cut:
    """Return the cut of a ``diff --git`` block."""
    said: dict[bytes, str] = {}
    at, binary = start + 1, False
    returns = rows[start].endswith(b"\r\n")
    while at < len(rows) and rows[at].startswith(_EXTENDED):
        if match := _SAID.match(rows[at].rstrip(b"\r\n")):
            said[match[1]] = _unquoted(lines.decode(match[2]))
        at += 1
    if at < len(rows) and rows[at].startswith((b"GIT binary patch", b"Binary files ")):
        binary = True
        while at < len(rows) and not rows[at].startswith(_BEYOND):
            at += 1
    if not binary and _marks(rows, at):
        old, new = _marked(rows[at]), _marked(rows[at + 1])
        return Cut(start, start, _hunks(rows, at + 2), old, new, returns=returns)
    old, new = _git_names(lines.decode(rows[start]), said)
    return Cut(start, start, at, old, new, binary, returns)


def _git_names(line: str, said: dict[bytes, str]) -> tuple[str | None, str | None]:
    """Return the names of a block without ``---`` and ``+++``."""
    rest = line.removeprefix("diff --git ").rstrip("\r\n")
    for word in (b"rename", b"copy"):
        pair = said.get(word + b" from"), said.get(word + b" to")
        if pair[0] is not None and pair[1] is not None:
            bare = rest == f"{pair[0]} {pair[1]}"
            return pair if bare else (f"a/{pair[0]}", f"b/{pair[1]}")
    old, new = _halves(rest)
    return None if b"new file" in said else old, None if b"deleted file" in said else new


def _halves(rest: str) -> tuple[str, str]:
    """Return both names of a ``diff --git`` line: where it is cut, they agree but for a prefix."""
    if match := cquote.QUOTED.match(rest):
        return cquote.unquote(match[1]), _unquoted(rest[match.end() + 1 :])
    for at in (at for at, char in enumerate(rest[:_LONGEST]) if char == " "):
        old, new = rest[:at], _unquoted(rest[at + 1 :])
        if old == new or old.partition("/")[2] == new.partition("/")[2] != "":
            return old, new
    return rest, rest


def _unquoted(name: str) -> str:
    match = cquote.QUOTED.fullmatch(name)
    return cquote.unquote(match[1]) if match else name


def _marked(row: bytes) -> str | None:
    """Return the name on a ``---`` or ``+++`` line, None for a file that is absent."""
    text = lines.decode(row)[4:].rstrip("\r\n")
    if match := cquote.QUOTED.match(text):
        name, stamp = cquote.unquote(match[1]), text[match.end() :].strip()
    else:
        name, _, stamp = text.partition("\t")
        if date := stamps.behind(name):
            name = name.removesuffix(date).rstrip()
    return None if name == fileheader.NULL or stamps.is_epoch(stamp) else name


def _hunks(rows: Sequence[bytes], at: int) -> int:
    """Return the index behind the hunks that begin at `at`."""
    while at < len(rows) and (head := _HUNK.match(rows[at])):
        old, new = (1 if count is None else int(count) for count in head.groups())
        at += 1
        while at < len(rows) and (old > 0 or new > 0 or rows[at].startswith(b"\\")):
            mark = rows[at][:1]
            if mark not in b" +-\\\r\n":
                return at
            old -= mark in b" -\r\n"
            new -= mark in b" +\r\n"
            at += 1
        if at < len(rows) and rows[at].startswith(b"\\"):
            at += 1
    return at
