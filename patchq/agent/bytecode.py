"""Compiled files of touched modules: which there are, and their removal.

Python takes ``__pycache__/m.*.pyc`` (any tag and optimisation level) and, where
``m.py`` is absent, a legacy ``m.pyc`` beside it. A timestamp or checked-hash
``.pyc`` that stays is harmless, since new files never repeat an mtime; an
unchecked-hash one (PEP 552) would be run whatever the source says.
"""

from __future__ import annotations

import contextlib
import os
from typing import Collection, Iterable, List, Optional

from patchq.agent import facts, guise

CACHE = "__pycache__"


def of(site: str, module: str) -> List[str]:
    """Return the compiled files of a module ``a/m.py`` that exist, site-relative."""
    if not module.endswith(".py"):
        return []
    folder, name = os.path.split(module)
    stem = name[:-3]
    found = []
    cache = os.path.join(folder, CACHE)
    for entry in _names(os.path.join(site, cache)):
        if entry.startswith(stem + ".") and entry.endswith(".pyc"):
            found.append(os.path.join(cache, entry))
    for legacy in (stem + ".pyc", stem + ".pyo"):
        if facts.exists(os.path.join(site, folder, legacy)):
            found.append(os.path.join(folder, legacy))
    return found


def is_cached(path: str) -> bool:
    """Return whether a compiled file is in a ``__pycache__``: of no use without its source."""
    return os.path.basename(os.path.dirname(path)) == CACHE


def removable(site: str, path: str) -> Optional[str]:
    """Return why a compiled file cannot be removed, or None.

    A ``__pycache__`` that is a link may lead out of the environment: what is there is not ours.
    """
    full = os.path.join(site, path)
    if is_cached(path) and facts.is_link(os.path.dirname(full)):
        return "its folder is a link"
    chattr = facts.flags(full)
    if chattr is not None:
        return "it is %s (chattr)" % chattr
    return facts.unwritable(os.path.dirname(full))


def unchecked(site: str, path: str) -> bool:
    """Return whether Python would run a compiled file without looking at its source."""
    head = (facts.optional(os.path.join(site, path)) or b"")[:8]
    return len(head) == 8 and head[4] & 0b11 == 0b01


def sweep(site: str, modules: Iterable[str], keep: Collection[str]) -> None:
    """Remove the compiled files of `modules`, but those in `keep`.

    One that cannot be removed stays: `patchq.agent.verify` has refused the kind
    that would do harm.
    """
    for module in modules:
        for path in of(site, module):
            if path not in keep and removable(site, path) is None:
                _unlink(os.path.join(site, path))


def clear(folder: str) -> None:
    """Remove an empty ``__pycache__`` from a folder that is about to go."""
    cache = os.path.join(folder, CACHE)
    if facts.is_folder(cache) and not os.listdir(cache):
        os.rmdir(cache)


def elsewhere(site: str, modules: Iterable[str]) -> Optional[str]:
    """Return what shows that compiled files of modules may be where we do not look, or None.

    Such a file may hold patched code stamped with the original's mtime: then a pop must
    not bring that mtime back.
    """
    for module in modules:
        cache = os.path.join(os.path.dirname(module), CACHE)
        if module.endswith(".py") and facts.is_link(os.path.join(site, cache)):
            return "%s is a link" % cache
    found = foreign_prefix(site)
    return None if found is None else "%s sets a PYTHONPYCACHEPREFIX" % found


def foreign_prefix(site: str) -> Optional[str]:
    """Return where a PYTHONPYCACHEPREFIX is in sight, or None."""
    if os.environ.get("PYTHONPYCACHEPREFIX"):
        return "the agent's environment"
    for folder in (site, os.path.dirname(os.path.abspath(os.__file__))):
        custom = os.path.join(folder, "sitecustomize.py")
        with contextlib.suppress(PermissionError):
            if b"pycache_prefix" in (facts.optional(custom, follow=True) or b""):
                return custom
    with guise.off():
        return _running()


def _running() -> Optional[str]:
    """Return the process that was started with a PYTHONPYCACHEPREFIX, or None."""
    for pid in _names("/proc"):
        if pid.isdigit():
            for name in ("environ", "cmdline"):
                try:
                    data = facts.read("/proc/%s/%s" % (pid, name))
                except OSError:
                    continue  # gone, or another user's
                if data.startswith(b"PYTHONPYCACHEPREFIX=") or (
                    b"\0PYTHONPYCACHEPREFIX=" in data
                    or b"\0pycache_prefix=" in data
                    or b"Xpycache_prefix=" in data
                ):
                    return "process %s" % pid
    return None


def _names(folder: str) -> List[str]:
    try:
        return sorted(os.listdir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return []


def _unlink(full: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(full)
