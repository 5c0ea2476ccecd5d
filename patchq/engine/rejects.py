r"""Put on the part of a patch that fits, as ``patch -f`` does; the other hunks are rejects.

For a plain tree only, where a person mends what is left: the reject of a file is a diff of
the hunks that have no place (GNU patch 2.7, "Diagnostics for wrong or missing patches").
A file that is not there, or that is there already, rejects all that is for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from patchq.engine import apply, landing, lines, locating, placing
from patchq.engine.apply import File
from patchq.engine.locating import Failed, Fate, Landed
from patchq.model import FileDiff, Hunk

Tree = Callable[[str], File | None]


@dataclass(frozen=True, slots=True)
class Part:
    """What became of one file's diff: the fate of each hunk, and the reject, if there is one.

    `problem` is why no hunk could be looked for.
    """

    path: str
    fates: tuple[Fate, ...]
    reject: bytes = b""
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Parts:
    """How much of a patch went on: file by file, and each file before and after."""

    files: tuple[Part, ...]
    before: Mapping[str, File | None]
    after: Mapping[str, File | None]


def part(diffs: Sequence[FileDiff], tree: Tree, *, fuzz: int = 0, reverse: bool = False) -> Parts:
    """Return what `diffs` make of the files that `tree` returns, hunk by hunk."""
    given = [apply.reversed_diff(one) for one in reversed(diffs)] if reverse else list(diffs)
    before: dict[str, File | None] = {}
    after: dict[str, File | None] = {}

    def read(path: str) -> File | None:
        if path not in before:
            before[path] = after[path] = tree(path)
        return after[path]

    files = [_file(diff, read, after, fuzz) for diff in given]
    return Parts(tuple(files), before, after)


def _file(diff: FileDiff, read: Tree, after: dict[str, File | None], fuzz: int) -> Part:
    """Put on what fits of one file's diff."""
    path = diff.new or diff.old or ""
    source = None if diff.old is None else read(diff.old)
    there = source if diff.new == diff.old or diff.new is None else read(diff.new)
    if source is None and diff.old is not None and not landing.from_nothing(diff):
        return _none(diff, path, "No file to patch")
    if there is not None and diff.old != diff.new and diff.new is not None:
        return _none(diff, path, f"{path} is there already")
    text, executable = source or (b"", False)
    hunks = landing.line_ends(diff.hunks, text)
    fates = locating.locate(hunks, text, fuzz)
    pairs = list(zip(hunks, fates, strict=True))
    placed = placing.place(
        tuple(landing.trimmed(hunk, fate) for hunk, fate in pairs if isinstance(fate, Landed)),
        text,
    )
    if isinstance(placed, placing.Rejected):
        return _none(diff, path, placed.message)
    left = tuple(hunk for hunk, fate in pairs if isinstance(fate, Failed))
    if diff.old is not None and diff.old != diff.new and not left:
        after[diff.old] = None
    if placed.data is not None and (diff.new is not None or left or placed.data):
        executable = executable if diff.new_mode is None else bool(diff.new_mode & 0o111)
        after[path] = (placed.data, executable)
    return Part(path, fates, _reject(replace(diff, hunks=left)) if left else b"")


def _none(diff: FileDiff, path: str, problem: str) -> Part:
    """Return the outcome of a diff of which nothing went on."""
    fates = tuple(Failed(hunk.new_start, problem) for hunk in diff.hunks)
    return Part(path, fates, _reject(diff), problem)


def _reject(diff: FileDiff) -> bytes:
    """Return a unified diff of hunks that have no place."""
    names = (diff.old or "/dev/null", diff.new or "/dev/null")
    head = "".join(f"{mark} {name}\n" for mark, name in zip(("---", "+++"), names, strict=True))
    return lines.encode(head) + b"".join(map(_hunk, diff.hunks))


def _hunk(hunk: Hunk) -> bytes:
    old, new = f"{hunk.old_start},{hunk.old_count}", f"{hunk.new_start},{hunk.new_count}"
    head = f"@@ -{old} +{new} @@\n".encode()
    rows = []
    for mark, text in hunk.lines:
        rows.append(mark.encode() + text)
        if not text.endswith(b"\n"):
            rows.append(b"\n\\ No newline at end of file\n")
    return head + b"".join(rows)
