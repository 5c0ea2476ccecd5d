r"""Put the diffs of a foreign patch on a tree that they were not made for, and say how.

Each hunk is given its place by `patchq.engine.locating`, then the diffs are applied at
these places by `patchq.engine.apply`, all or nothing. A hunk that ends up in another class
or def than its heading says is a conflict, wherever it fits. Nothing is ever turned round:
that a patch could be taken *out* of the tree is said, no more.

Line ends are the tree's: where all lines of a hunk end in LF and all of the file in CR LF,
or the other way round, the hunk takes on the file's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from patchq.engine import apply, enclosing, lines, locating, placing
from patchq.engine.apply import File
from patchq.engine.locating import Fate, Landed
from patchq.model import FileDiff, Hunk, Patch

Tree = Callable[[str], File | None]
_MOST_FUZZ = 3


@dataclass(frozen=True, slots=True)
class FileLanding:
    """How one file's diff landed; `problem` is why it did not, where no hunk is to blame.

    `astray` has the hunks that lie in another class or def. `ends` is true where the line
    ends of the diff are not the file's, `headed` where a heading is not as it stands there.
    """

    path: str
    fates: tuple[Fate, ...] = ()
    problem: str = ""
    astray: tuple[str, ...] = ()
    ends: bool = False
    headed: bool = False
    hunks: tuple[Hunk, ...] = ()

    @property
    def fits(self) -> bool:
        """True where every hunk has its place, and the right one."""
        landed = all(isinstance(fate, Landed) for fate in self.fates)
        return landed and not self.problem and not self.astray

    @property
    def exact(self) -> bool:
        """True where every hunk lies where it was made for, as it is."""
        moved = any(not isinstance(f, Landed) or f.offset or f.fuzz for f in self.fates)
        return self.fits and not moved and not self.ends and not self.headed

    @property
    def moved(self) -> tuple[str, ...]:
        """What GNU patch says of the hunks that have their place, but for exact ones."""
        said = (
            locating.words(number, fate)
            for number, fate in enumerate(self.fates, 1)
            if isinstance(fate, Landed)
        )
        return tuple(line for line in said if line)

    @property
    def failures(self) -> tuple[str, ...]:
        """Every reason against this file's diff, in GNU patch's words where it has any."""
        said = [
            f"{locating.words(number, fate)[:-1]}: {fate.why}"
            for number, fate in enumerate(self.fates, 1)
            if not isinstance(fate, Landed)
        ]
        return (*said, *self.astray, *([self.problem] if self.problem else ()))


@dataclass(frozen=True, slots=True)
class Landing:
    """How a patch landed on a tree: file by file; `done` is what it does there, if it fits."""

    files: tuple[FileLanding, ...]
    done: apply.PatchApplied | None
    before: Mapping[str, File | None]
    renamed: Mapping[str, str]

    @property
    def fits(self) -> bool:
        """True where all of it fits."""
        return self.done is not None

    @property
    def exact(self) -> bool:
        """True where all of it fits as it is."""
        return self.fits and all(one.exact for one in self.files)


def land(
    diffs: Sequence[FileDiff], tree: Tree, *, fuzz: int = 0, reverse: bool = False
) -> Landing:
    """Return how `diffs` land on the files that `tree` returns; `reverse` takes them out."""
    given = [apply.reversed_diff(one) for one in reversed(diffs)] if reverse else list(diffs)
    work = _Work(tree, fuzz)
    files = [work.take(diff) for diff in given]
    renamed = {one.new: one.old for one in given if one.renamed and one.new and one.old}
    if not all(one.fits for one in files):
        return Landing(tuple(files), None, work.before, renamed)
    done = apply.apply_patch(Patch("", b"", b"", tuple(work.exact)), work.read)
    if isinstance(done, apply.PatchRejected):
        why = {path: one.message for path, one in ((done.path, done.rejected), *done.others)}
        known = {one.path for one in files}
        files = [replace(one, problem=why.get(one.path, "")) for one in files]
        files += [
            FileLanding(path, problem=said) for path, said in why.items() if path not in known
        ]
        return Landing(tuple(files), None, work.before, renamed)
    files = [
        _headed(one, settled, work.before, done.after)
        for one, settled in zip(files, work.settled, strict=True)
    ]
    whole = all(one.fits for one in files)
    return Landing(tuple(files), done if whole else None, work.before, renamed)


def reversible(
    diffs: Sequence[FileDiff], tree: Tree, *, fuzz: int = 0, reverse: bool = False
) -> bool:
    """Return whether a patch that does not fit could be taken out of the tree instead."""
    return land(diffs, tree, fuzz=fuzz, reverse=not reverse).fits


def fuzz_needed(diffs: Sequence[FileDiff], tree: Tree, *, reverse: bool = False) -> int | None:
    """Return the least fuzz with which a patch that does not fit would, None if none helps."""
    for fuzz in range(1, _MOST_FUZZ + 1):
        if land(diffs, tree, fuzz=fuzz, reverse=reverse).fits:
            return fuzz
    return None


def salvaged(
    diffs: Sequence[FileDiff], tree: Tree, *, fuzz: int = 0, reverse: bool = False
) -> tuple[FileDiff, ...]:
    """Return of a patch that does not fit the hunks that do; `reverse` has turned them already.

    A file of which something else is wrong is left out whole, and one that was to go stays.
    """
    out = []
    given = [apply.reversed_diff(one) for one in reversed(diffs)] if reverse else diffs
    landed = land(diffs, tree, fuzz=fuzz, reverse=reverse)
    for diff, file in zip(given, landed.files, strict=False):
        fits = [isinstance(fate, Landed) for fate in file.fates]
        if file.problem or file.astray or (fits and not any(fits)):
            continue
        hunks = tuple(hunk for hunk, fit in zip(diff.hunks, fits, strict=False) if fit)
        if all(fits):
            out.append(diff)
        else:
            out.append(replace(diff, new=diff.new or diff.old, hunks=hunks))
    return tuple(out)


class _Work:
    """The files of one patch while the places of its hunks are found."""

    def __init__(self, tree: Tree, fuzz: int) -> None:
        self.tree, self.fuzz = tree, fuzz
        self.before: dict[str, File | None] = {}
        self.texts: dict[str, bytes | None] = {}
        # The diffs as they fit, and with the context that the tree has.
        self.exact: list[FileDiff] = []
        self.settled: list[FileDiff] = []

    def read(self, path: str) -> File | None:
        """Return a file of the tree as it is before the patch."""
        if path not in self.before:
            self.before[path] = self.tree(path)
        return self.before[path]

    def take(self, diff: FileDiff) -> FileLanding:
        """Find the places of one file's hunks."""
        path = diff.new or diff.old or ""
        if diff.old is not None and from_nothing(diff) and self._text(diff.old) is None:
            diff = replace(diff, old=None)
        if diff.new is not None:
            self.read(diff.new)
        if diff.old is None:
            self.exact.append(diff)
            self.settled.append(diff)
            self.texts[path] = b"".join(text for hunk in diff.hunks for _, text in hunk.lines)
            return FileLanding(path)
        text = self._text(diff.old)
        if text is None:
            return FileLanding(path, problem="the patch changes this file, and it is not there")
        hunks = line_ends(diff.hunks, text)
        fates = locating.locate(hunks, text, self.fuzz)
        landing = FileLanding(path, fates, ends=hunks != diff.hunks, hunks=hunks)
        if landing.fits:
            return self._put(diff, hunks, text, landing)
        return landing

    def _put(
        self, diff: FileDiff, hunks: tuple[Hunk, ...], text: bytes, landing: FileLanding
    ) -> FileLanding:
        """Take note of a diff whose hunks have their places."""
        places = [fate for fate in landing.fates if isinstance(fate, Landed)]
        pairs = list(zip(hunks, places, strict=True))
        exact = replace(diff, hunks=tuple(trimmed(hunk, place) for hunk, place in pairs))
        result = placing.place(exact.hunks, text)
        if isinstance(result, placing.Rejected):
            return replace(landing, problem=result.message)
        rows = lines.split(text)
        settled = tuple(_settled(hunk, place, rows) for hunk, place in pairs)
        self.exact.append(exact)
        self.settled.append(replace(diff, hunks=settled))
        assert diff.old is not None
        self.texts[diff.old] = None
        if diff.new is not None:
            self.texts[diff.new] = result.data
        return landing

    def _text(self, path: str) -> bytes | None:
        if path in self.texts:
            return self.texts[path]
        found = self.read(path)
        return found and found[0]


def from_nothing(diff: FileDiff) -> bool:
    """Return whether a diff has a file's first lines only: GNU patch then makes the file."""
    return bool(diff.hunks) and all(
        not hunk.old_count and not hunk.old_start for hunk in diff.hunks
    )


def trimmed(hunk: Hunk, place: Landed) -> Hunk:
    """Return a hunk at its place, without the context that did not count."""
    count = len(hunk.lines) - place.bottom
    kept = hunk.lines[place.top : count]
    dropped = place.top + place.bottom
    old, new = hunk.old_count - dropped, hunk.new_count - dropped
    start = place.start + place.top
    return Hunk(start + (old > 0), old, place.line + place.top, new, kept, hunk.heading)


def _settled(hunk: Hunk, place: Landed, rows: list[bytes]) -> Hunk:
    """Return a hunk at its place, with the context that stands there."""
    out, at = [], place.start
    for mark, text in hunk.lines:
        if mark == "+":
            out.append((mark, text))
        elif at < len(rows):
            out.append((mark, rows[at]))
            at += 1
    old, new = (sum(mark != gone for mark, _ in out) for gone in "+-")
    return Hunk(place.start + (old > 0), old, place.line, new, tuple(out), hunk.heading)


def line_ends(hunks: tuple[Hunk, ...], text: bytes) -> tuple[Hunk, ...]:
    """Return hunks with the file's line ends, where hunks and file each have one kind only."""
    theirs = _ends([line for hunk in hunks for _, line in hunk.lines])
    ours = _ends(lines.split(text))
    if not theirs or not ours or theirs == ours:
        return hunks
    turned = []
    for hunk in hunks:
        body = tuple(
            (mark, line[: -len(theirs)] + ours if line.endswith(theirs) else line)
            for mark, line in hunk.lines
        )
        turned.append(replace(hunk, lines=body))
    return tuple(turned)


def _ends(rows: Sequence[bytes]) -> bytes:
    """Return what all lines end in, but for a last one without newline; empty if they differ."""
    whole = [row for row in rows if row.endswith(b"\n")]
    with_return = sum(row.endswith(b"\r\n") for row in whole)
    if not whole or 0 < with_return < len(whole):
        return b""
    return b"\r\n" if with_return else b"\n"


def _headed(
    landing: FileLanding,
    diff: FileDiff,
    before: Mapping[str, File | None],
    after: Mapping[str, File | None],
) -> FileLanding:
    """Return how a file's diff landed, with the hunks that lie in another class or def."""
    path = diff.old or ""
    below, above = (
        {path: file[0] if file is not None else None}
        for file in (before.get(path), after.get(diff.new or path))
    )
    astray = enclosing.check(below, above, [diff], by_name=True)
    headed = any(enclosing.check(below, above, [diff]))
    return replace(landing, astray=tuple(one.message for one in astray), headed=headed)
