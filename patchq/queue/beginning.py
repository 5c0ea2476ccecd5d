"""A queue where there was none: its settings, what git is to know of it, its folders."""

from __future__ import annotations

from pathlib import Path

import tomlkit

from patchq.errors import PatchqError
from patchq.queue import store, writing

# Line ends that git changes on a checkout make a patch another one.
ATTRIBUTES = """\
# Patches are bytes: git changes no line end in them, whatever core.autocrlf says.
*.patch -text
*.diff -text
*.pyi -text
series -text
series.lock -text
"""


def make(folder: Path, distribution: str, summary: str) -> tuple[str, ...]:
    """Make a queue in a folder that is not there yet; return the names of its files.

    Raises:
        PatchqError: it is there, or can not be written.
    """
    if folder.exists():
        what = "queue" if (folder / store.SETTINGS).exists() else "folder"
        raise PatchqError(
            f"there is a {what} {folder} already",
            why="init makes what is not there, and changes nothing",
            mend="patchq queues" if what == "queue" else "patchq init ANOTHER-NAME",
        )
    settings = tomlkit.document()
    settings["distribution"] = distribution
    settings["summary"] = summary
    settings["upstream"] = []
    files = {store.SETTINGS: tomlkit.dumps(settings), ".gitattributes": ATTRIBUTES}
    try:
        (folder / store.SHARED).mkdir(parents=True)
        for name, text in reversed(files.items()):
            writing.write(folder / name, text.encode())
    except OSError as error:
        raise _unwritten(folder, error) from error
    return (*files, f"{store.SHARED}/")


def make_tree(folder: Path) -> None:
    """Make quilt's folder of patches, empty.

    Raises:
        PatchqError: it is there, or can not be made.
    """
    try:
        folder.mkdir(parents=True)
    except FileExistsError as error:
        raise PatchqError(
            f"there is {folder} already",
            why="init makes what is not there, and changes nothing",
            mend=f"patchq series --tree {folder.parent}",
        ) from error
    except OSError as error:
        raise _unwritten(folder, error) from error


def _unwritten(folder: Path, error: OSError) -> PatchqError:
    return PatchqError(
        f"{folder} can not be made",
        why=error.strerror or str(error),
        mend=f"see to the permissions of {folder.parent}, then run it again",
    )
