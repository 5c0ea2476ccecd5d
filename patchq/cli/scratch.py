"""A copy of an environment's files for a command to work in, and what it made of them."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from patchq.conversation.desk import File
from patchq.errors import PatchqError
from patchq.model import ABSENT, FileState, Sha256

# A tree's own history and records: no patch has them.
_RECORDS = (".git", ".hg", ".svn", ".bzr", ".pc", ".patchq")
_COMPILED = "__pycache__"


@dataclass(slots=True)
class Scratch:
    """Files in a folder of their own; `first` is what they were when they were put there.

    `is_text` says by a path whether a patch can have the file; `left` are those that it can
    not have, and that the command made.
    """

    folder: Path
    is_text: Callable[[str], bool]
    first: dict[str, FileState] = field(default_factory=dict)
    left: list[str] = field(default_factory=list)

    def put(self, path: str, data: bytes, executable: bool) -> None:
        """Write a file of the environment."""
        place = self.folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)
        place.chmod(0o755 if executable else 0o644)
        self.first[path] = FileState.of(data, executable)

    def copy(self, root: Path, patches: str) -> None:
        """Copy a plain tree with its times and modes, but for its patches and records."""

        def left_out(folder: str, names: list[str]) -> set[str]:
            at = os.path.relpath(folder, root)
            out = {name for name in names if os.path.normpath(f"{at}/{name}") == patches}
            return out.union(name for name in names if name in _RECORDS or _odd(folder, name))

        shutil.copytree(root, self.folder, symlinks=True, ignore=left_out, dirs_exist_ok=True)
        for path in self._files():
            self.first[path] = _state(self.folder / path)

    def changed(self) -> dict[str, File | None]:
        """Return the files that are others now, were made, or are gone (None).

        Raises:
            PatchqError: a file is a folder or a link now: a patch can not say so.
        """
        new: dict[str, File | None] = {}
        for path in self._files():
            if path not in self.first and not self.is_text(path):
                self.left.append(path)
            elif _state(self.folder / path) != self.first.get(path, ABSENT):
                data = (self.folder / path).read_bytes()
                new[path] = data, _executable(self.folder / path)
        for path in self.first:
            place = self.folder / path
            if place.is_symlink() or (place.exists() and not place.is_file()):
                raise PatchqError(
                    f"{path} is {'a link' if place.is_symlink() else 'no file'} now",
                    why="a patch is made of files that hold text",
                    mend="patchq shell ...   # again, with a command that leaves it a file",
                )
            if not place.exists():
                new[path] = None
        return new

    def initial(self, path: str) -> FileState:
        """Return what a path held before the command ran."""
        return self.first.get(path, ABSENT)

    def _files(self) -> Iterator[str]:
        for folder, inside, names in os.walk(self.folder):
            at = os.path.relpath(folder, self.folder)
            inside[:] = sorted(set(inside) - {*_RECORDS, _COMPILED})
            for name in sorted(names):
                place = Path(folder, name)
                if place.is_file() and not place.is_symlink():
                    yield os.path.normpath(f"{at}/{name}")


def _odd(folder: str, name: str) -> bool:
    """Return whether a name is that of a device, a pipe or a socket."""
    place = Path(folder, name)
    return not (place.is_symlink() or place.is_file() or place.is_dir())


def _executable(place: Path) -> bool:
    return bool(place.stat().st_mode & 0o100)


def _state(place: Path) -> FileState:
    """Return a file's digest and mode without holding its bytes."""
    with place.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return FileState(Sha256(digest), _executable(place))
