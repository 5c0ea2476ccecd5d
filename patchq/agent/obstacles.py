"""Why one path of the environment could not be replaced. Nothing here writes."""

from __future__ import annotations

import os
from typing import Dict, Optional

from patchq.agent import facts
from patchq.agent.environment import Environment
from patchq.agent.facts import Facts

# How an extension module says which interpreters it is for; without, it is for any.
_TAGS = (".abi3", ".cpython-", ".pypy", ".graalpy")


# The longest path of Linux, and room for names that a push, its pop and a recovery make.
_PATH_MAX, _ROOM = 4095, 64
_OWN = ("", "state.json", "patches.json", "ledger.jsonl", "lock")


def problem(
    here: Environment, path: str, found: Facts, seen: Dict[str, Optional[str]]
) -> Optional[str]:
    """Return why `path` could not be replaced, or None; `seen` caches by folder."""
    parent = os.path.dirname(path)
    reason = facts.beneath(here.site, here.real, path, here.mounted)
    if reason is not None:
        return reason
    if found.kind in ("folder", "other") or (found.kind == "link" and found.sha256 is None):
        return "it is %s, not a file" % (
            "a dangling link" if found.kind == "link" else "a " + found.kind
        )
    if path in here.others:
        return "RECORD of %s lists it too" % here.others[path]
    if parent not in seen:
        seen[parent] = _folder_problem(here, parent)
    reason = seen[parent]
    if reason is not None:
        return reason
    if found.kind != "absent":
        reason = facts.foreign(found.uid, found.gid)
        chattr = facts.flags(here.at(path)) if found.kind == "file" else None
        if reason is None and chattr is not None:
            reason = "it is %s (chattr)" % chattr
    if reason is None and path.endswith(".py"):
        reason = _twin(here, path)
    return reason


def own(home: str) -> Optional[str]:
    """Return why a state's folder could not be written as it must be, or None.

    What is in a link, or on a mount of its own, would be another's.
    """
    if len(os.fsencode(home)) + _ROOM > _PATH_MAX:
        return "its path is so long that names in it would be longer than a path may be"
    mounted = facts.mounts()
    for folder in (os.path.dirname(home), home, home + "/stage", home + "/originals"):
        if facts.is_link(folder):
            return "%s is a symbolic link, no folder of patchq's own" % folder
        if os.path.realpath(folder) in mounted:
            return "%s is a mount point of its own" % folder
        for path in [folder] if folder != home else [home + "/" + name for name in _OWN]:
            chattr = facts.flags(path)
            if chattr is not None:
                return "%s is %s (chattr)" % (path, chattr)
    return None


def _folder_problem(here: Environment, parent: str) -> Optional[str]:
    """Return why nothing can be put into a folder (or into the nearest that exists)."""
    while parent and not facts.exists(here.at(parent)):
        parent = os.path.dirname(parent)
    full = here.at(parent) if parent else here.site
    if not facts.is_folder(full):
        return "%s is not a folder" % full
    info = os.stat(full)
    return facts.unwritable(full) or facts.foreign(info.st_uid, info.st_gid)


def _twin(here: Environment, path: str) -> Optional[str]:
    """Return what Python imports instead of a module: a compiled twin or a package, or None.

    Python of any version: a folder that is a ``--target`` may serve several.
    """
    stem = here.at(path)[:-3]
    twin = _extension(stem)
    if twin is not None:
        return "the compiled twin %s wins, a patch of it would do nothing" % twin
    start = stem + "/__init__"
    if facts.exists(start + ".py") or facts.exists(start + ".pyc") or _extension(start):
        return "the package %s/ of the same name wins" % stem
    return None


def _extension(stem: str) -> Optional[str]:
    """Return an extension module ``STEM.so`` or ``STEM.TAG.so``, None where there is none."""
    folder, name = os.path.split(stem)
    for entry in sorted(os.listdir(folder)) if facts.is_folder(folder) else ():
        if entry.startswith(name) and entry.endswith(".so"):
            tag = entry[len(name) : -3]
            if not tag or tag.startswith(_TAGS):
                return os.path.join(folder, entry)
    return None
