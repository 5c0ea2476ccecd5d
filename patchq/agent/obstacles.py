"""Why one path of the environment could not be replaced. Nothing here writes."""

from __future__ import annotations

import os
from typing import Dict, Optional

from patchq.agent import facts
from patchq.agent.environment import Environment
from patchq.agent.facts import Facts


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


def _folder_problem(here: Environment, parent: str) -> Optional[str]:
    """Return why nothing can be put into a folder (or into the nearest that exists)."""
    while parent and not os.path.lexists(here.at(parent)):
        parent = os.path.dirname(parent)
    full = here.at(parent) if parent else here.site
    if not os.path.isdir(full):
        return "%s is not a folder" % full
    info = os.stat(full)
    return facts.unwritable(full) or facts.foreign(info.st_uid, info.st_gid)


def _twin(here: Environment, path: str) -> Optional[str]:
    """Return what Python imports instead of a module: a compiled twin or a package, or None."""
    import _imp

    stem = here.at(path)[:-3]
    for suffix in _imp.extension_suffixes():
        if os.path.lexists(stem + suffix):
            return "the compiled twin %s wins, a patch of it would do nothing" % (stem + suffix)
    if os.path.isfile(stem + "/__init__.py"):
        return "the package %s/ of the same name wins" % stem
    return None
