"""Files in the folders of a distribution that its RECORD does not list.

What another distribution's RECORD lists is that one's, but for code that Python takes in
the place of a listed module: a folder ``m/`` or an extension ``m.*.so`` beside ``m.py``.
Of compiled files there are those that run whatever the source says: one outside of
``__pycache__``, and one whose header says that the source is not to be looked at.
"""

from __future__ import annotations

import os
from typing import Dict, Iterator, List, Mapping, Set, Tuple

from patchq.agent import bytecode, facts, record
from patchq.agent.environment import Environment

_COMPILED = (".pyc", ".pyo")
# Endings that Python imports; they are told although nobody reads them as text.
_IMPORTED = (".so", *_COMPILED)


def paths(here: Environment, listed: Mapping[str, object], skip: Tuple[str, ...]) -> List[str]:
    """Return the files that neither RECORD nor another distribution's lists, sorted.

    Those that end as in `skip` are left out where Python does not import them.
    """
    folders: Set[str] = {path.rpartition("/")[0] for path in listed}
    folders = {folder for folder in folders if folder and not _foreign(folder)}
    found: Dict[str, None] = {}
    for folder in sorted(folders):
        for path in _unlisted(here, folder, folders):
            if path in listed and "/__pycache__/" not in path:
                continue
            if path.endswith(_IMPORTED) or not path.endswith(skip):
                found[path] = None
    plugins = "%s/entry_points.txt" % (here.installed.folder if here.installed else "")
    if here.installed and plugins not in listed and facts.exists(here.at(plugins)):
        found[plugins] = None  # it names code that others import
    others = _other_records(here) if found else []
    kept = {path for path in found if all(record.find(data, path) is None for data in others)}
    ours = {path for path in found if _source(path) in listed}
    return sorted(kept.union(ours, _shadows(here, listed)))


def _source(path: str) -> str:
    """Return the module that a file of a ``__pycache__`` was compiled from, "" for others."""
    folder, cache, name = path.rpartition("/%s/" % bytecode.CACHE)
    return folder + "/" + name.split(".")[0] + ".py" if cache else ""


def _foreign(folder: str) -> bool:
    parts = folder.split("/")
    return parts[-1] == bytecode.CACHE or parts[0].endswith((".dist-info", ".data", ".egg-info"))


def _unlisted(here: Environment, folder: str, known: Set[str]) -> Iterator[str]:
    """Yield the files of a folder, and all below it in folders of which nothing is known."""
    for entry in _entries(here, folder):
        path = folder + "/" + entry.name
        if not entry.is_dir(follow_symlinks=False):
            yield path
        elif entry.name == bytecode.CACHE:
            yield from _unchecked(here, path)
        elif path not in known:
            inner = path + "/"
            if any(other.startswith(inner) for other in known):
                continue
            yield from _unlisted(here, path, known)


def _unchecked(here: Environment, folder: str) -> Iterator[str]:
    """Yield the compiled files of a ``__pycache__`` that run whatever the source says."""
    for entry in _entries(here, folder):
        if entry.name.endswith(".pyc") and entry.is_file():
            path = folder + "/" + entry.name
            if bytecode.unchecked(here.site, path):
                yield path


def _shadows(here: Environment, listed: Mapping[str, object]) -> Iterator[str]:
    """Yield code that is not listed and that Python takes for a listed module ``m.py``."""
    modules: Dict[str, Set[str]] = {}
    for path in listed:
        folder, _, name = path.rpartition("/")
        if name.endswith(".py"):
            modules.setdefault(folder, set()).add(name[:-3])
    for folder in sorted(modules):
        for entry in _entries(here, folder):
            stem = entry.name.split(".")[0]
            if stem not in modules[folder]:
                continue
            path = folder + "/" + entry.name if folder else entry.name
            if entry.is_dir():
                inner = (path + "/" + one.name for one in _entries(here, path))
                starts = (one for one in inner if _starts(one))
                yield from (one for one in starts if one not in listed)
            elif entry.name.endswith(".so") and path not in listed:
                yield path


def _starts(path: str) -> bool:
    """Return whether a file makes its folder a package."""
    name = path.rpartition("/")[2]
    return name.split(".")[0] == "__init__" and name.endswith((".py", *_IMPORTED))


def _entries(here: Environment, folder: str) -> "List[os.DirEntry[str]]":
    try:
        return sorted(os.scandir(here.at(folder)), key=lambda entry: entry.name)
    except OSError:
        return []


def _other_records(here: Environment) -> List[bytes]:
    out = []
    own = here.installed.folder if here.installed is not None else ""
    for name in os.listdir(here.site):
        if name.endswith(".dist-info") and name != own:
            out.append(facts.optional(os.path.join(here.site, name, "RECORD")) or b"")
    return out
