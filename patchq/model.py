"""The values that patchq thinks in: files, diffs, patches, surveys.

Paths are `str`: POSIX, relative to site-packages, checked by
`patchq.agent.protocol.unsafe` before a value is built; they travel as JSON keys
and git paths by the thousand. File names that are not UTF-8 hold surrogate
escapes. Contents are `bytes`, named by SHA-256. Nothing here does I/O.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NewType

from patchq.agent import protocol
from patchq.errors import UsageError

Sha256 = NewType("Sha256", str)


def sha256(data: bytes) -> Sha256:
    """Return the digest by which `data` is named."""
    return Sha256(protocol.sha256(data))


class UnsafePath(UsageError):
    """A path leads out of the tree, or into something that is not the package's."""


def safe_path(path: str, *, source: str) -> str:
    """Return `path`, or raise `UnsafePath` naming the file it came from."""
    reason = protocol.unsafe(path)
    if reason is None:
        return path
    raise UnsafePath(
        f"{source} names the path {path!r}, which patchq never touches",
        why=f"a path must stay inside the package's own files; {reason}",
        mend=f"edit {source} so that it names a file of the package",
    )


@dataclass(frozen=True, slots=True)
class FileState:
    """What is at one path: nothing (`sha256` is None), or a regular file.

    Of a file's mode only the executable bit counts, as in git.
    """

    sha256: Sha256 | None
    executable: bool = False

    @classmethod
    def of(cls, data: bytes | None, executable: bool = False) -> FileState:
        """Return the state of a file with these bytes, absent for None."""
        return ABSENT if data is None else cls(sha256(data), executable)

    def to_json(self) -> list[object]:
        """Return ``[kind, executable, sha256]`` as lock, state and wire have it."""
        return ["absent" if self.sha256 is None else "file", self.executable, self.sha256]

    @classmethod
    def from_json(cls, value: list[object]) -> FileState:
        """Return the state that `to_json` wrote."""
        _, executable, digest = value
        return cls(None if digest is None else Sha256(str(digest)), bool(executable))


ABSENT = FileState(None)


@dataclass(frozen=True, slots=True)
class PathChange:
    """What one patch, or a whole transaction, does to one path."""

    path: str
    before: FileState
    after: FileState


def effect_id(changes: Iterable[PathChange]) -> Sha256:
    """Return the id by which hosts are compared: ordered path, kind, mode, before, after."""
    digest = hashlib.sha256()
    for change in changes:
        digest.update(
            repr((change.path, change.before.to_json(), change.after.to_json())).encode(
                errors="surrogateescape"
            )
        )
    return Sha256(digest.hexdigest())


@dataclass(frozen=True, slots=True)
class Hunk:
    """One hunk; `lines` are (mark, text), mark one of ``" "``, ``"-"``, ``"+"``.

    A text ends in a newline, but for a last line that has none. Starts are
    1-based, and 0 where the count is 0 at the start of an empty file.
    `heading` is what follows the second ``@@``.
    """

    old_start: int
    old_count: int
    new_start: int
    new_count: int
    lines: tuple[tuple[str, bytes], ...]
    heading: bytes = b""


@dataclass(frozen=True, slots=True)
class FileDiff:
    """What a patch says of one file; `old` or `new` is None where it is absent.

    Modes are git's (0o100644, 0o100755), None where the diff does not say.
    """

    old: str | None
    new: str | None
    old_mode: int | None = None
    new_mode: int | None = None
    hunks: tuple[Hunk, ...] = ()

    @property
    def renamed(self) -> bool:
        """True where the file moves to another path."""
        return self.old is not None and self.new is not None and self.old != self.new


@dataclass(frozen=True, slots=True)
class Patch:
    """One patch of a series: its bytes as they are on disk, and what they say.

    `header` is all before the first diff (DEP-3), byte for byte. `sketch` is the
    text of the post-condition for this release, None where there is none.
    `reverse` and `strip` are the options of the series line (``-R``, ``-pN``);
    `diffs` have `strip` applied already, and are not reversed.
    """

    name: str
    text: bytes
    header: bytes
    diffs: tuple[FileDiff, ...]
    strip: int = 1
    reverse: bool = False
    sketch: bytes | None = None
    sketch_name: str = ""

    @property
    def stem(self) -> str:
        """The name without ``.patch`` or ``.diff``."""
        return self.name.removesuffix(".patch").removesuffix(".diff")

    @property
    def paths(self) -> tuple[str, ...]:
        """Every path that the patch touches, in its order."""
        names = (name for diff in self.diffs for name in (diff.old, diff.new) if name is not None)
        return tuple(dict.fromkeys(names))


@dataclass(frozen=True, slots=True)
class LockedPatch:
    """What the lock pins of one patch: texts by hash, and each path before and after."""

    name: str
    options: str
    patch: Sha256
    sketch: Sha256 | None
    changes: tuple[PathChange, ...]
    reads: Mapping[str, Sha256 | None] = field(default_factory=dict)

    @property
    def paths(self) -> tuple[str, ...]:
        """Every path that the patch changes, in its order."""
        return tuple(change.path for change in self.changes)


@dataclass(frozen=True, slots=True)
class Lock:
    """`series.lock`: facts of one series on one release, which a push recomputes."""

    distribution: str
    release: str
    tree: str
    patches: tuple[LockedPatch, ...]

    @property
    def base(self) -> dict[str, FileState]:
        """Each touched path as the pristine release has it."""
        first: dict[str, FileState] = {}
        for patch in self.patches:
            for change in patch.changes:
                first.setdefault(change.path, change.before)
        return first


@dataclass(frozen=True, slots=True)
class Series:
    """The patches of one queue for one release, in order; `lock` None where none is written."""

    release: str
    patches: tuple[Patch, ...]
    lock: Lock | None


@dataclass(frozen=True, slots=True)
class Found:
    """One surveyed path. `kind`: file, link, absent, folder or other.

    A link's `sha256` is its target's. `recorded` is the digest that RECORD has.
    `problem` says why a push could not replace it (mount point, foreign owner,
    compiled twin, leads out ...), None where it could.
    """

    path: str
    kind: str
    state: FileState
    recorded: Sha256 | None = None
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Installed:
    """The distribution that owns the paths; `record` is RECORD's SHA-256 as it is now."""

    name: str
    version: str
    dist_info: str
    record: Sha256
    installer: str


@dataclass(frozen=True, slots=True)
class AppliedPatch:
    """One patch of the recorded stack; `options` are the lock's (``-p0 -R``).

    `forced`: only a part of it went on, so it is to be refreshed before the stack moves.
    """

    queue: str
    patch: str
    release: str
    sha256: Sha256
    changes: tuple[PathChange, ...]
    options: str = ""
    receipt: str = ""
    forced: bool = False

    def to_json(self) -> dict[str, object]:
        """Return the entry as state.json has it."""
        forced = {"forced": True} if self.forced else {}
        return {
            **forced,
            "queue": self.queue,
            "patch": self.patch,
            "release": self.release,
            "sha256": self.sha256,
            "options": self.options,
            "receipt": self.receipt,
            "changes": [[c.path, c.before.to_json(), c.after.to_json()] for c in self.changes],
        }


@dataclass(frozen=True, slots=True)
class Survey:
    """What the agent found in one environment.

    `kept` says of each touched path how its original is kept: inode, copy or pristine,
    None for a file that a patch created.
    """

    python: str
    executable: str
    site: str
    installed: Installed | None
    files: Mapping[str, Found]
    stack: tuple[AppliedPatch, ...] = ()
    generation: int = 0
    environment: str = ""
    interrupted: Mapping[str, object] | None = None
    orphaned: str | None = None
    refusal: Mapping[str, str] | None = None
    contents: Mapping[str, bytes] = field(default_factory=dict)
    kept: Mapping[str, str | None] = field(default_factory=dict)
