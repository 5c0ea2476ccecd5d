"""Where things are: caches, queues and the environment that a verb means."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from patchq.errors import UsageError

if TYPE_CHECKING:
    from patchq.queue import store


# Where a plain tree's patches are, and where patchq remembers it if they are elsewhere.
_USUAL = {"patches": "patches", "series": "series"}
_LOCATION = ".patchq/tree/location.json"
_DEBIAN = "debian/patches"


def cache() -> Path:
    """Return the user's cache folder for patchq: ``PATCHQ_CACHE``, else the system's."""
    chosen = os.environ.get("PATCHQ_CACHE")
    return Path(chosen).absolute() if chosen else _usual("cache", "~/.cache")


def agents() -> Path:
    """Return the folder for the agent as it is sent, and for where it was sent before."""
    return cache() / "agents"


def state() -> Path:
    """Return the user's folder for work that a cache must not lose.

    ``PATCHQ_STATE``, else the system's.
    """
    chosen = os.environ.get("PATCHQ_STATE")
    return Path(chosen).absolute() if chosen else _usual("state", "~/.local/state")


def config() -> Path:
    """Return the user's folder for patchq's settings, as the system has it."""
    return _usual("config", "~/.config")


def _usual(kind: str, folder: str) -> Path:
    """Return the user's folder for patchq of some kind, where the system has it.

    On Linux that is the XDG Base Directory Specification's: platformdirs, which knows the
    other systems, takes as long to import as all that `patchq top` needs.
    """
    if os.uname().sysname == "Linux":
        named = os.environ.get(f"XDG_{kind.upper()}_HOME", "")
        return Path(named if os.path.isabs(named) else os.path.expanduser(folder)) / "patchq"
    import platformdirs

    return Path(getattr(platformdirs, f"user_{kind}_path")("patchq"))


def one_queue(named: str | None, verb: str) -> store.Queue:
    """Return the queue that a verb works on: the named one, else the only one of the user's own.

    The ready-made queues are meant where they are named.
    """
    found = queues(named)
    ready = tuple(one for one in found if named is None and is_shipped(one))
    found = tuple(one for one in found if one not in ready)
    if len(found) == 1:
        return found[0]
    meant = f"; ready-made, and meant by name: {', '.join(one.name for one in ready)}"
    raise UsageError(
        f"{verb} needs one queue",
        why=f"in sight: {', '.join(one.name for one in found) or 'none'}" + meant * bool(ready),
        mend=f"patchq {verb} --queue NAME",
    )


def queues(named: str | None, *, needed: bool = True) -> tuple[store.Queue, ...]:
    """Return the queues that a verb may mean: the named one, else all in sight.

    A named one that is not in sight is an error only if it is `needed`.
    """
    from patchq.queue import store

    if named is not None and (os.sep in named or Path(named, "queue.toml").is_file()):
        return (store.open(Path(named)),)
    found = store.queues(Path.cwd(), os.environ)
    if named is None:
        return found
    mine = tuple(queue for queue in found if queue.name == named)
    if mine or not needed:
        return mine[:1]
    raise UsageError(
        f"there is no queue {named}",
        why=f"in sight: {', '.join(queue.name for queue in found) or 'none'}",
        mend="patchq queues",
    )


def is_shipped(queue: store.Queue) -> bool:
    """Return whether a queue is one of the ready-made ones that came with patchq."""
    from patchq.queue import store

    return store.is_shipped(queue)


def tree(named: str) -> Path:
    """Return the root of a plain tree: the folder itself, or the nearest above it that is one.

    A tree has quilt's folder of patches (``QUILT_PATCHES``, else ``patches`` or
    ``debian/patches``), or a record of quilt's or patchq's; a folder that has neither, nor
    anything above it, becomes one.

    Raises:
        UsageError: there is no such folder.
    """
    folder = Path(named).absolute()
    if not folder.is_dir():
        raise UsageError(
            f"--tree {named} is not a folder",
            why="it must be a folder of files to patch",
            mend="patchq VERB --tree .",
        )
    marks = (os.environ.get("QUILT_PATCHES", "patches"), ".patchq/tree", ".pc", _DEBIAN)
    for at in (folder, *folder.parents):
        if any((at / mark).is_dir() for mark in marks):
            return at
    return folder


def tree_queue(root: Path) -> store.Queue:
    """Return the queue of a plain tree."""
    from patchq.queue import store

    patches, listing = _quilts(root)
    return store.tree(root, patches, listing)


def remember(root: Path, queue: store.Queue) -> None:
    """Keep where a plain tree's patches are, if that is not where they usually are.

    As quilt does: the settings that a tree was begun with go before the user's own.
    """
    chosen = {"patches": queue.releases[0], "series": queue.listing}
    if chosen != _USUAL and _kept(root) is None:
        from patchq.queue import writing

        place = root / _LOCATION
        if place.parent.is_dir():
            writing.write(place, json.dumps({"schema": 1, **chosen}).encode())


def _quilts(root: Path) -> tuple[str, str]:
    """Return quilt's folder of patches in a tree, and the name of the series there.

    What is remembered of the tree, by quilt (``.pc``) or patchq, goes before the user's own
    settings, as with quilt.
    """
    kept = _kept(root) or {}
    named = {
        "patches": os.environ.get("QUILT_PATCHES") or _folder(root),
        "series": os.environ.get("QUILT_SERIES") or "series",
    }
    return kept.get("patches", named["patches"]), kept.get("series", named["series"])


def _folder(root: Path) -> str:
    """Return where a tree's patches usually are: a Debian package has them in ``debian``."""
    debian = (root / _DEBIAN / "series").is_file() and not (root / "patches").is_dir()
    return _DEBIAN if debian else "patches"


def _kept(root: Path) -> dict[str, str] | None:
    """Return what a tree's own records say of where its patches are, None if nothing."""
    place = root / _LOCATION
    if place.is_file():
        found = json.loads(place.read_text())
        return {name: str(found[name]) for name in _USUAL}
    quilts = {name: root / ".pc" / f".quilt_{name}" for name in _USUAL}
    there = {name: path.read_text().strip() for name, path in quilts.items() if path.is_file()}
    return there or None


def inside(root: Path | None, name: str) -> str:
    """Return a file of an environment as its path from there.

    `root`: where it is, if it is here and known. A file named from the working folder is
    meant where that is below the root; of an absolute path what follows site-packages.

    Raises:
        UsageError: it lies outside.
    """
    path = os.path.normpath(name)
    if root is not None:
        real = os.path.relpath(os.path.abspath(name), root)
        if not real.startswith(".."):
            return real
    for folder in ("site-packages", "dist-packages"):
        if os.path.isabs(path) and f"/{folder}/" in path:
            return path.partition(f"/{folder}/")[2]
    if os.path.isabs(path) or path.startswith(".."):
        raise UsageError(
            f"{name} is not in the environment",
            why=f"a file is named by its path below {root or 'site-packages'}",
            mend="patchq files -a",
        )
    return path


def alone(tree: str | None, others: Mapping[str, object]) -> None:
    """Check that a plain tree is named without what names another environment or queue."""
    given = [name for name, value in others.items() if value]
    if tree is not None and given:
        raise UsageError(
            f"--tree and {given[0]} do not go together",
            why="a plain tree is a folder here, and its queue is the one in it",
            mend=f"leave {given[0]} out",
        )


def interpreter() -> str:
    """Return the active environment's interpreter: ``$VIRTUAL_ENV``, else PATH's python3."""
    active = os.environ.get("VIRTUAL_ENV")
    if active:
        return str(Path(active, "bin", "python"))
    found = shutil.which("python3")
    if found is not None:
        return found
    raise UsageError(
        "no environment is active",
        why="VIRTUAL_ENV is not set, and PATH has no python3",
        mend="patchq VERB --python /path/to/the/environment/bin/python",
    )


def operator() -> tuple[str, str]:
    """Return who works here and on which machine, for receipts."""
    import getpass

    try:
        who = getpass.getuser()
    except (KeyError, OSError):  # no name for this uid: OSError from Python 3.13 on
        who = str(os.getuid())
    return who, os.uname().nodename


def own_python() -> str:
    """Return the interpreter that runs patchq; it serves ``--target`` folders."""
    return sys.executable
