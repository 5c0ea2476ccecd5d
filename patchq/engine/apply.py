r"""Put a diff into a text, or take it out; bytes in, bytes out.

A hunk fits where its old lines stand byte for byte; there is no fuzz here. The
exact place comes first; with `search` the one other place that fits is taken, and
more than one is a conflict, never a guess. A patch is all or nothing, and every
file that it names must change: "applied" is never said of a patch that did nothing.

Nothing is read from disk: `apply_patch` asks a function for the files it needs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from patchq import model
from patchq.engine import lines, placing
from patchq.engine.placing import Applied as Applied  # the values of `apply`
from patchq.engine.placing import Rejected as Rejected
from patchq.model import ABSENT, FileDiff, FileState, Hunk, Patch, PathChange, Sha256

# A file's bytes, and whether it is executable.
File = tuple[bytes, bool]

_SWAP = {" ": " ", "-": "+", "+": "-"}
# The text after one patch is the text before the next: hashed once.
_sha256 = lru_cache(maxsize=64)(model.sha256)


@dataclass(frozen=True, slots=True)
class PatchApplied:
    """What a patch did: changes in the patch's order, new texts by digest, files by path."""

    changes: tuple[PathChange, ...]
    contents: Mapping[Sha256, bytes]
    after: Mapping[str, File | None]
    offsets: Mapping[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class PatchRejected:
    """The first file that a patch does not fit, and the further ones."""

    path: str
    rejected: Rejected
    others: tuple[tuple[str, Rejected], ...] = ()

    @property
    def message(self) -> str:
        """All of it in words, one file a line."""
        every = ((self.path, self.rejected), *self.others)
        return "\n".join(f"{path}: {rejected.message}" for path, rejected in every)


def apply(
    diff: FileDiff, before: bytes | None, *, reverse: bool = False, search: bool = False
) -> Applied | Rejected:
    """Return the text that `diff` makes of `before`, or what does not fit.

    None is an absent file. Of a rename, `before` is the text at the old path.

    Example:
        >>> hunk = Hunk(1, 1, 1, 1, (("-", b"1"), ("+", b"2")))
        >>> apply(FileDiff("x", "x", hunks=(hunk,)), b"1")
        Applied(data=b'2', offsets=(0,))
    """
    diff = reversed_diff(diff) if reverse else diff
    if diff.old is None:
        if before is not None:
            return Rejected(0, "exists", "the patch creates this file, and it is there already")
        before = b""
    elif before is None:
        return Rejected(0, "absent", "the patch changes this file, and it is not there")
    result = placing.place(diff.hunks, before, search=search)
    if isinstance(result, Rejected) or diff.new is not None:
        return result
    if result.data:
        more = lines.shown(lines.split(result.data)[0])
        return Rejected(0, "mismatch", f"the patch deletes this file, and it has more: {more}")
    return Applied(None, result.offsets)


def apply_patch(
    patch: Patch,
    tree: Callable[[str], File | None],
    *,
    search: bool = False,
    reverse: bool = False,
) -> PatchApplied | PatchRejected:
    """Return what `patch` makes of the files that `tree` returns, or all that does not fit.

    `reverse` takes the patch out again; a patch with ``-R`` in its series turns twice.
    Two diffs of one file are put in one after the other; renames are simultaneous,
    as git means them, so that two files can trade names.
    """
    diffs = patch.diffs
    if patch.reverse != reverse:
        diffs = tuple(reversed_diff(diff) for diff in reversed(diffs))
    work = _Work(tree, {diff.old for diff in diffs if diff.old != diff.new})
    rejections = []
    for diff in diffs:
        rejected = work.take(diff, search)
        if rejected is not None:
            rejections.append((diff.old or diff.new or "", rejected))
    changes = () if rejections else work.changes()
    rejections += [
        (
            change.path,
            Rejected(0, "mismatch", "the patch names this file and changes nothing in it"),
        )
        for change in changes
        if change.before == change.after
    ]
    if rejections:
        (path, first), *others = rejections
        return PatchRejected(path, first, tuple(others))
    after = work.after
    contents = {_sha256(file[0]): file[0] for file in after.values() if file is not None}
    return PatchApplied(changes, contents, after, work.offsets)


def reversed_diff(diff: FileDiff) -> FileDiff:
    """Return the diff that undoes `diff`.

    Starts are counted anew from the old ones: a patch from which somebody took a hunk
    by hand still applies, and its new starts are wrong.
    """
    hunks, shift = [], 0
    for hunk in diff.hunks:
        start = hunk.old_start - (hunk.old_count > 0) + shift + (hunk.new_count > 0)
        swapped = tuple((_SWAP[mark], text) for mark, text in hunk.lines)
        hunks.append(
            Hunk(start, hunk.new_count, hunk.old_start, hunk.old_count, swapped, hunk.heading)
        )
        shift += hunk.new_count - hunk.old_count
    return FileDiff(diff.new, diff.old, diff.new_mode, diff.old_mode, tuple(hunks))


class _Work:
    """The files of one patch while its diffs are put in one by one."""

    def __init__(self, tree: Callable[[str], File | None], leaving: set[str | None]) -> None:
        self.tree, self.leaving = tree, leaving
        self.before: dict[str, File | None] = {}
        self.after: dict[str, File | None] = {}
        self.offsets: dict[str, tuple[int, ...]] = {}
        # Paths at which a file has arrived under its new name.
        self.arrived: set[str] = set()

    def take(self, diff: FileDiff, search: bool) -> Rejected | None:
        """Put one diff in, or return why it does not fit."""
        source = None if diff.old is None else self._read(diff.old, original=diff.old != diff.new)
        if diff.new is not None and diff.old != diff.new:
            there = self._read(diff.new)
            if there is not None and (diff.new not in self.leaving or diff.new in self.arrived):
                return Rejected(
                    0, "exists", f"the patch creates {diff.new}, and it is there already"
                )
        result = apply(diff, source and source[0], search=search)
        if isinstance(result, Rejected):
            return result
        executable = _executable(diff, source)
        if isinstance(executable, Rejected):
            return executable
        if diff.old is not None and diff.old != diff.new and diff.old not in self.arrived:
            self.after[diff.old] = None
        if diff.new is not None and result.data is not None:
            self.after[diff.new] = (result.data, executable)
            if diff.old != diff.new:
                self.arrived.add(diff.new)
        self.offsets[diff.new or diff.old or ""] = result.offsets
        return None

    def changes(self) -> tuple[PathChange, ...]:
        """Return each path before and after, in the order the patch names them."""
        return tuple(
            PathChange(path, _state(before), _state(self.after.get(path, before)))
            for path, before in self.before.items()
        )

    def _read(self, path: str, *, original: bool = False) -> File | None:
        """Return a file as it is now; `original`: as it was before another took its name."""
        if path not in self.before:
            self.before[path] = self.tree(path)
        if path not in self.after or (original and path in self.arrived):
            return self.before[path]
        return self.after[path]


def _state(file: File | None) -> FileState:
    return ABSENT if file is None else FileState(_sha256(file[0]), file[1])


def _executable(diff: FileDiff, source: File | None) -> bool | Rejected:
    """Return whether the new file is executable; a change of mode must find the old one."""
    was = source is not None and source[1]
    if source is not None and diff.old_mode is not None and bool(diff.old_mode & 0o111) != was:
        found = "executable" if was else "not executable"
        why = f"the patch expects the mode {diff.old_mode:o}, and this file is {found}"
        return Rejected(0, "mismatch", why)
    return was if diff.new_mode is None else bool(diff.new_mode & 0o111)
