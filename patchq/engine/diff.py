"""Unified diffs: bytes to `FileDiff`.

`parse` reads git's and GNU diff's formats. unidiff reads the hunks (the one door
to it); names and git's extended headers are `patchq.engine.fileheader`'s, since
unidiff cuts names with spaces wrongly. What unidiff read is then held against
the raw lines: every line must be accounted for byte for byte, so that no line of
a patch is ever dropped in silence.

Applying is `patchq.engine.apply`'s, writing diffs `patchq.engine.textdiff`'s.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from unidiff import patch as udiff
from unidiff.errors import UnidiffParseError

from patchq.engine import fileheader, lines
from patchq.engine.fileheader import Block, Source
from patchq.engine.textdiff import unified as unified  # both ways under one name
from patchq.model import FileDiff, Hunk

PatchFormatError = fileheader.PatchFormatError

# Where quilt 0.66 ends a patch's header (scripts/patchfns, patch_header).
_START = re.compile(r"(---|\*\*\*|Index:)[ \t][^ \t]|diff -")
_HUNK = re.compile(rb"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@ ?(.*)", re.DOTALL)
# Lines that mean something to git or patch, and may not stand where they mean nothing.
_STRAY = (
    *("@@", "--- ", "+++ ", "\\", "old mode ", "new mode ", "deleted file mode "),
    *("new file mode ", "rename from ", "rename to ", "copy from ", "copy to "),
)
_SIGNATURE = ("-- \n", "--\n", "---\n", "--", "-- ")
_NO_NEWLINE = "\\ No newline at end of file\n"
_SHORTEST = 13
_FREE, _HEADER, _BODY = range(3)
# Hunks and files of one patch, which take some 0.1 ms each; releases differ in a tenth of that.
_MOST, _COUNTED = 50_000, ("@@ -", "diff --git ")


@dataclass(frozen=True, slots=True)
class _Text:
    """A patch while it is read: `fed` is what unidiff sees of the lines from `begin` on.

    `owner` notes for each line what took it: nothing, a file's header, a hunk.
    """

    source: Source
    raw: Sequence[bytes]
    begin: int
    fed: Sequence[str]
    owner: bytearray


def parse(
    text: bytes, *, name: str, strip: int = 1, exists: Callable[[str], bool] = lambda _: True
) -> tuple[bytes, tuple[FileDiff, ...]]:
    r"""Return the header of a patch, byte for byte, and what it says of each file.

    `name` is for messages; `strip` is ``-pN``; `exists` tells which files there are, which
    decides where a plain diff has two names. A text without diffs is all header.

    Raises:
        PatchFormatError: the patch is cut short, miscounted, binary, about links ...
        UnsafePath: it names a path outside the package.

    Example:
        >>> parse(b"why\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-1\n+2\n", name="x.patch")[1][0].new
        'x'
    """
    raw = lines.split(text)
    source = Source(name, [lines.decode(line) for line in raw], strip, exists)
    begin = _header_end(source)
    if sum(line.startswith(_COUNTED) for line in source.text) > _MOST:
        raise source.error(
            1, f"it has more than {_MOST:,} hunks and files", "split it into smaller patches"
        )
    if begin == len(raw):
        return text, ()
    blocks, fed = _prepared(source, begin)
    read = _Text(source, raw, begin, fed, bytearray(len(raw)))
    diffs = []
    for file in _read(source, begin, fed):
        at = begin + (file.diff_line_no or 0) - 1
        block = blocks.get(at) or fileheader.plain_block(source, at - 1)
        read.owner[block.start : block.end] = bytes([_HEADER]) * (block.end - block.start)
        diffs.append(_file_diff(source, block, _hunks(read, file)))
    _account(source, begin, read.owner)
    return b"".join(raw[:begin]), tuple(diffs)


def _header_end(source: Source) -> int:
    """Return the index of the first line of a diff; the number of lines if there is none."""
    text = source.text
    for index, line in enumerate(text):
        fileheader.refuse_binary(source, index)
        if line.startswith("@@ -"):
            raise source.error(index + 1, "this hunk has no name above it")
        if not _START.match(line):
            continue
        following = text[index + 1] if index + 1 < len(text) else ""
        if line.startswith("***"):
            if following.startswith("--- "):
                raise source.error(index + 1, "this is a context diff; patchq reads unified ones")
        elif not line.startswith("---") or following.startswith("+++ "):
            return index
        else:
            raise source.error(index + 1, "a '---' line stands without its '+++' line")
    return len(text)


def _prepared(source: Source, begin: int) -> tuple[dict[int, Block], list[str]]:
    """Return the ``diff --git`` blocks by index, and the lines that unidiff is to read.

    No hunk line begins with a d: a ``diff --git`` at column 0 always begins a block.
    In its place unidiff gets names that it cannot misread; the count of lines stays.
    """
    blocks: dict[int, Block] = {}
    fed = list(source.text[begin:])
    for index in range(begin, len(source.text)):
        line = source.text[index]
        if line.startswith("diff --git "):
            block = blocks[index] = fileheader.git_block(source, index)
            plain = ["diff --git a/x b/x\n", *["#\n"] * (block.end - index - 1)]
            if block.hunks:
                plain[-2:] = ["--- a/x\n", "+++ b/x\n"]
            fed[index - begin : block.end - begin] = plain
        elif line.startswith("\\"):  # diff says it in the user's language
            fed[index - begin] = _NO_NEWLINE
        else:
            fileheader.refuse_binary(source, index)
    return blocks, fed


def _read(source: Source, begin: int, fed: Sequence[str]) -> udiff.PatchSet:
    """Return what unidiff reads, or its complaint with the line where it stopped."""
    at = begin

    def counted() -> Iterator[str]:
        nonlocal at
        for line in fed:
            at += 1
            yield line

    try:
        return udiff.PatchSet(counted())
    except (UnidiffParseError, ValueError) as error:  # ValueError: a number of 5,000 digits
        why = str(error).split("\n")[0]
        if "than expected" in why:
            why += "; its lines are not as many as its @@ line says, or the patch is cut short"
        raise source.error(at, why) from error


def _hunks(text: _Text, file: udiff.PatchedFile) -> tuple[Hunk, ...]:
    """Return the hunks of one file, in order and apart from each other."""
    hunks: list[Hunk] = []
    floor = 0
    for read in file:
        body = [line for line in read if line.diff_line_no is not None]
        if not body:
            continue  # its @@ line stays unaccounted for, and is refused as that
        first = text.begin + (body[0].diff_line_no or 0) - 1
        hunk = _hunk(text, first, body, read)
        start = hunk.old_start - (hunk.old_count > 0)
        if start < floor:
            raise text.source.error(first, "the hunks overlap, or are not in order")
        floor = start + hunk.old_count
        hunks.append(hunk)
    return tuple(hunks)


def _hunk(text: _Text, first: int, body: list[udiff.Line], read: udiff.Hunk) -> Hunk:
    """Return one hunk, whose text begins at index `first`, equal to the raw lines."""
    head = _HUNK.fullmatch(text.raw[first - 1].rstrip(b"\n"))
    counts = (read.source_start, read.source_length, read.target_start, read.target_length)
    if head is None or tuple(1 if n is None else int(n) for n in head.groups()[:4]) != counts:
        raise text.source.error(first, "this is not the @@ line of a hunk")
    if (read.source_start == 0 and read.source_length) or (
        read.target_start == 0 and read.target_length
    ):
        raise text.source.error(first, "lines are counted from 1; only no lines begin at 0")
    out: list[tuple[str, bytes]] = []
    for at, line in enumerate(body, first):
        raw, mark = text.raw[at], line.line_type
        if f"{mark}{line.value}" != text.fed[at - text.begin] and raw != b"\n":
            raise text.source.error(at + 1, "this is not a line of a hunk")
        if mark == "\\":
            _drop_newline(text, at, out)
        elif raw.endswith(b"\n"):
            out.append((mark, raw[1:] or raw))
        else:
            raise text.source.error(at + 1, "the patch is cut short inside this line")
    end = first + len(body)
    if end < len(text.raw) and text.fed[end - text.begin] == _NO_NEWLINE:
        _drop_newline(text, end, out)
        end += 1
    text.owner[first - 1 : end] = bytes([_BODY]) * (end - first + 1)
    for gone in "+-":
        side = [line for mark, line in out if mark != gone]
        if not all(line.endswith(b"\n") for line in side[:-1]):
            raise text.source.error(first, "a line without newline is not the last of its file")
    return Hunk(*counts, tuple(out), head[5])


def _drop_newline(text: _Text, index: int, out: list[tuple[str, bytes]]) -> None:
    """Take the newline off the last line of a hunk, as the marker at `index` says.

    git-apply(1) too does not take less than 13 bytes for a marker.
    """
    if len(text.raw[index]) < _SHORTEST and not text.raw[index].endswith(b"\n"):
        raise text.source.error(index + 1, "the patch is cut short inside this line")
    if not out or not out[-1][1].endswith(b"\n"):
        raise text.source.error(index + 1, "no line stands above this marker")
    out[-1] = (out[-1][0], out[-1][1][:-1])


def _file_diff(source: Source, block: Block, hunks: tuple[Hunk, ...]) -> FileDiff:
    """Return one file's diff, where header and hunks tell the same story."""
    diff, line = block.diff, block.start + 1
    if bool(hunks) != block.hunks:
        raise source.error(line, "the diff has no hunk, or one without '---' and '+++'")
    if (diff.old is None and any(hunk.old_count for hunk in hunks)) or (
        diff.new is None and any(hunk.new_count for hunk in hunks)
    ):
        raise source.error(line, "a hunk has lines of the file on the side where there is none")
    changed = any(mark != " " for hunk in hunks for mark, _ in hunk.lines)
    if not changed and diff.old == diff.new and diff.old_mode == diff.new_mode:
        raise source.error(line, f"the diff of {diff.new} changes nothing")
    return replace(diff, hunks=hunks)


def _account(source: Source, begin: int, owner: bytearray) -> None:
    """Refuse lines that no file and no hunk took, where they look like part of one."""
    below_hunk = False
    for index in range(begin, len(owner)):
        line = source.text[index]
        if owner[index] == _FREE and line != "\n":
            lost = below_hunk and line.startswith((" ", "+", "-")) and line not in _SIGNATURE
            if lost or line.startswith(_STRAY):
                raise source.error(
                    index + 1, "this line belongs to no hunk; are the counts of the @@ line right?"
                )
        below_hunk = owner[index] == _BODY or (below_hunk and line == "\n")
