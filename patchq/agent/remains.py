"""What patches leave behind where their distribution was replaced under them.

An installer takes away what RECORD lists, so nothing is left. A copy over the tree (COPY,
unzip, rsync) takes nothing away, nor does ``pip install --target --upgrade`` outside of the
package's folder: a file that a patch created stays, and no RECORD lists it any more. The same
copy writes into our inode of a file of which only the mode was patched. The record knows both.
"""

from __future__ import annotations

import contextlib
import os
from typing import Any, Iterable, List, Mapping, Optional

from patchq.agent import bytecode, facts, protocol, record
from patchq.agent.environment import Environment


def files(here: Environment, more: Optional[Mapping[str, str]] = None) -> List[str]:
    """Return the files that patches created and that are still as they left them.

    `more`: paths, with the digest that they got, which no state speaks of yet.
    """
    made = dict(more or {})
    for path, kept, after in _recorded(here):
        if kept["sha256"] is None and after[2] is not None:
            made[path] = after[2]
    found = [path for path, digest in made.items() if _holds(here, path, digest)]
    listed = _records(here) if found else []
    return [path for path in found if all(record.find(data, path) is None for data in listed)]


def modes(here: Environment) -> List[str]:
    """Return the files of the same release of which a patched mode is all that is left."""
    wrote = (here.state or {"dist_info": {}})["dist_info"]
    if here.installed is None or here.installed.metadata != wrote.get("metadata"):
        return []
    found = []
    for path, kept, after in _recorded(here):
        same = kept["kind"] == "file" and kept["sha256"] == after[2]
        if same and bool(kept["executable"]) != bool(after[1]) and _holds(here, path, after[2]):
            info = os.lstat(here.at(path))
            if info.st_nlink == 1 and bool(info.st_mode & 0o100) == bool(after[1]):
                found.append(path)
    return found


def remove(
    here: Environment, more: Optional[Mapping[str, str]] = None, folders: Iterable[str] = ()
) -> List[str]:
    """Take away what `files` and `modes` return, with the folders that patchq made for it."""
    left, changed = files(here, more), modes(here)
    kept = (here.state or {"originals": {}})["originals"]
    for path in changed:
        os.chmod(here.at(path), kept[path]["mode"] & 0o777)
    for path in left:
        os.unlink(here.at(path))
    created = [path for path, one in kept.items() if one["sha256"] is None] + list(more or ())
    gone = [path for path in created if not facts.exists(here.at(path)) and _inside(here, path)]
    bytecode.sweep(here.site, gone, ())
    made = {*(here.state or {"folders": ()})["folders"], *folders}
    for folder in sorted(made, reverse=True):
        if _inside(here, folder + "/x") and facts.is_folder(here.at(folder)):
            bytecode.clear(here.at(folder))
            with contextlib.suppress(OSError):  # somebody else's file is in it
                os.rmdir(here.at(folder))
    return left + changed


def _recorded(here: Environment) -> Any:
    """Yield path, what is kept of its original, and the state that the stack left it in."""
    document = here.state or {"stack": (), "originals": {}}
    after = {path: new for patch in document["stack"] for path, _, new in patch["changes"]}
    for path, kept in document["originals"].items():
        if path in after:
            yield path, kept, after[path]


def _holds(here: Environment, path: str, digest: str) -> bool:
    found = facts.look(here.at(path))[0]
    return found.kind == "file" and found.sha256 == digest and _inside(here, path)


def _inside(here: Environment, path: str) -> bool:
    return facts.beneath(here.site, here.real, path, here.mounted) is None


def _records(here: Environment) -> List[bytes]:
    """Return every RECORD but the one that we wrote: a left-behind one lists our own files."""
    wrote = (here.state or {"dist_info": {}})["dist_info"]
    found = []
    for name in os.listdir(here.site):
        if name.endswith(".dist-info"):
            data = facts.optional(os.path.join(here.site, name, "RECORD")) or b""
            if name != wrote.get("name") or protocol.sha256(data) != wrote.get("record"):
                found.append(data)
    return found
