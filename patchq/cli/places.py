"""Where things are: caches, queues and the environment that a verb means."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from patchq.errors import UsageError

if TYPE_CHECKING:
    from patchq.queue import store


def cache() -> Path:
    """Return the user's cache folder for patchq: ``PATCHQ_CACHE``, else the system's."""
    chosen = os.environ.get("PATCHQ_CACHE")
    if chosen:
        return Path(chosen).absolute()
    import platformdirs

    return platformdirs.user_cache_path("patchq")


def state() -> Path:
    """Return the user's folder for work that a cache must not lose.

    ``PATCHQ_STATE``, else the system's.
    """
    chosen = os.environ.get("PATCHQ_STATE")
    if chosen:
        return Path(chosen).absolute()
    import platformdirs

    return platformdirs.user_state_path("patchq")


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

    place = queue.folder.resolve()
    return any(place.is_relative_to(folder.resolve()) for folder in store.shipped())


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
