"""Answer ``discover``: which interpreters of this machine have a distribution.

Looked at are what running processes name (/proc) and the places where environments usually
are. Files are read: pyvenv.cfg, the names of dist-info folders; nothing of an environment is
run. Bounded in time (`ROOM`), in folders and in answers; ``cut`` says where it ended early.
What is no line of text is passed over. A process in another mount namespace (a container)
names paths of its own: such are only counted, as ``elsewhere``.
"""

from __future__ import annotations

import glob
import itertools
import os
import re
import stat
import time
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Set, Tuple

from patchq.agent import proc, programs, state

# Seconds; a home with a thousand projects takes a tenth of one.
ROOM = 20.0
_PREFIXES, _FOUND, _PIDS, _NAMES, _EACH = 3000, 200, 20, 50_000, 300
_HEAD = 1 << 16
_OPEN = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
_MARKS = (b"/site-packages/", b"/dist-packages/")
_MAPPED = re.compile(rb"\s(/\S.*)/lib(?:64)?/(?:python|pypy)3[\d.]*t?/(?:site|dist)-packages/")
_LIBRARY = re.compile(r"(?:python|pypy)(3(?:\.\d+)?)t?")
_SYSTEM = ("/usr/local", "/usr")
_PLACES = (
    "/opt/*",
    "/opt/*/envs/*",
    "/opt/*/venv",
    "/opt/*/.venv",
    "/srv/*",
    "/srv/*/venv",
    "/srv/*/.venv",
    "/venv",
    "/.venv",
    "/app/venv",
    "/app/.venv",
    "/workspace/venv",
    "/workspace/.venv",
)
# Below a home.
_HOMELY = (
    "venv",
    ".venv",
    "*/venv",
    "*/.venv",
    ".virtualenvs/*",
    *(
        name + more
        for name in ("miniconda3", "anaconda3", "miniforge3", "mambaforge", "micromamba", ".conda")
        for more in ("", "/envs/*")
    ),
    ".pyenv/versions/*",
    ".local/share/uv/python/*",
    ".local/share/uv/tools/*",
    ".local/share/pipx/venvs/*",
    ".local/pipx/venvs/*",
    ".local",
)


class Prefix(NamedTuple):
    """A folder that has an interpreter in bin/, and the folders of packages it reads."""

    path: str
    venv: bool
    sites: Tuple[str, ...]


def answer(request: Mapping[str, Any]) -> Tuple[Dict[str, Any], Dict[str, bytes]]:
    """Answer with an entry for each interpreter, folder of packages and distribution."""
    wanted = {state.normalise(name): name for name in request["distributions"]}
    until = time.monotonic() + ROOM
    running: Dict[str, List[int]] = {}
    elsewhere = 0
    for pid, names in _processes():
        if names is None:
            elsewhere += 1
            continue
        first = next((one for one in names if _prefix(one).sites), None)
        if first is not None:
            running.setdefault(first, []).append(pid)
        if time.monotonic() > until:
            break
    found: List[Dict[str, Any]] = []
    seen: Set[str] = set()
    cut = None
    for count, path in enumerate(itertools.chain(running, _places())):
        if time.monotonic() > until or count > _PREFIXES or len(found) > _FOUND:
            cut = "after %d folders in %d s" % (count, ROOM)
            break
        real = os.path.realpath(path)
        if real not in seen:
            seen.add(real)
            found += _entries(_prefix(path), wanted, running.get(path, []))
    return {"found": _once(found), "elsewhere": elsewhere, "cut": cut}, {}


def _processes() -> Iterator[Tuple[int, Optional[List[str]]]]:
    """Yield each Python process with the prefixes it names; None for one in a container."""
    mine = proc.link(os.getpid(), "ns/mnt")
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():
        pid = int(name) if name.isdigit() else 0
        if not pid or pid == os.getpid():
            continue
        exe = proc.link(pid, "exe")
        argv = os.fsdecode(proc.read(pid, "cmdline")).split("\0")
        if not programs.is_python(exe) and not programs.is_python(argv[0]):
            continue
        space = proc.link(pid, "ns/mnt")
        if space and space != mine:
            yield pid, None
        else:
            yield pid, list(_named(pid, exe.replace(" (deleted)", ""), argv[0]))


def _named(pid: int, exe: str, first: str) -> Iterator[str]:
    """Yield the prefixes that a process names, the surest first."""
    for line in itertools.islice(proc.mapped(pid, _MARKS), 1):
        found = _MAPPED.search(line)
        if found is not None:
            yield os.fsdecode(found[1])
    if programs.is_python(first) and "/" in first:
        if not first.startswith("/"):
            first = os.path.join(proc.link(pid, "cwd"), first)
        yield os.path.dirname(os.path.dirname(os.path.normpath(first)))
    elif programs.is_python(first):
        environ = proc.environ(pid)
        for key in ("VIRTUAL_ENV", "CONDA_PREFIX"):
            if environ.get(key, "").startswith("/"):
                yield os.path.normpath(environ[key])
    if exe.startswith("/"):
        yield os.path.dirname(os.path.dirname(exe))


def _places() -> Iterator[str]:
    """Yield the folders in which environments usually are."""
    homes = [os.path.expanduser("~")]
    if os.geteuid() == 0:
        homes += sorted(glob.iglob("/home/*"))[:_EACH]
    for home in dict.fromkeys(homes):
        if not home.startswith("/") or home == "/":
            continue
        for pattern in _HOMELY:
            yield from _globbed(os.path.join(glob.escape(home), pattern))
        listed = _head(os.path.join(home, ".conda", "environments.txt")) or b""
        lines = listed.split(b"\n")[:_EACH]
        yield from (os.fsdecode(line.strip()) for line in lines if line.startswith(b"/"))
    for pattern in _PLACES:
        yield from _globbed(pattern)
    yield from _SYSTEM


def _globbed(pattern: str) -> Iterator[str]:
    return itertools.islice(glob.iglob(pattern), _EACH)


def _prefix(path: str) -> Prefix:
    """Return what a folder is as the prefix of an interpreter."""
    own = _head(os.path.join(path, "pyvenv.cfg"))
    sites = _sites(path)
    if own is not None:
        pairs = (line.partition(b"=") for line in own.split(b"\n"))
        settings = {key.strip().lower(): value.strip() for key, _, value in pairs}
        if settings.get(b"include-system-site-packages", b"").lower() == b"true":
            home = os.fsdecode(settings.get(b"home", b""))
            sites += _sites(os.path.dirname(home)) if home.startswith("/") else []
    elif path == "/usr":  # Debian's interpreter reads what pip puts into /usr/local, too
        sites += _sites("/usr/local")
    return Prefix(path, own is not None, tuple(sites))


def _sites(prefix: str) -> List[str]:
    found: Dict[str, str] = {}
    start = os.path.join(glob.escape(prefix), "lib*")
    for library in ("python3*", "pypy3*"):
        for packages in ("site-packages", "dist-packages"):
            for site in _globbed(os.path.join(start, library, packages)):
                found.setdefault(os.path.realpath(site), site)
    return list(found.values())


def _entries(
    prefix: Prefix, wanted: Mapping[str, str], pids: List[int]
) -> Iterator[Dict[str, Any]]:
    """Yield what a prefix has of the wanted distributions."""
    for site in prefix.sites:
        versions = list(_versions(site, wanted))
        plain = site.isprintable() and prefix.path.isprintable()
        python = _interpreter(prefix, site) if versions and plain else None
        for name, version in versions if python else ():
            yield {
                "python": python,
                "site": site,
                "distribution": wanted[name],
                "version": version,
                "processes": pids[:_PIDS],
            }


def _versions(site: str, wanted: Mapping[str, str]) -> Iterator[Tuple[str, str]]:
    try:
        with os.scandir(site) as entries:
            for entry in itertools.islice(entries, _NAMES):
                stem, dot, kind = entry.name.rpartition(".")
                name, _, version = stem.rpartition("-")
                good = dot and kind == "dist-info" and version.isprintable()
                if good and state.normalise(name) in wanted:
                    yield state.normalise(name), version
    except OSError:
        return


def _interpreter(prefix: Prefix, site: str) -> Optional[str]:
    """Return the interpreter that reads a folder of packages, None where there is none."""
    library = _LIBRARY.fullmatch(os.path.basename(os.path.dirname(site)))
    version = library[1] if library else "3"
    names = ("python", "python3") if prefix.venv else ()
    folders = [prefix.path]
    if prefix.path in _SYSTEM or prefix.path.endswith("/.local"):
        folders += _SYSTEM
    for folder in folders:
        for name in (*names, "python%s" % version, "pypy%s" % version, "python3", "python"):
            path = os.path.join(folder, "bin", name)
            if os.access(path, os.X_OK) and os.path.isfile(path) and _is(path, version, prefix):
                return path
    return None


def _is(path: str, version: str, prefix: Prefix) -> bool:
    """Return whether an interpreter is of this version, as far as its name tells."""
    real = re.search(r"3\.\d+$", os.path.basename(os.path.realpath(path)))
    return prefix.venv or real is None or version == "3" or real[0] == version


def _head(path: str) -> Optional[bytes]:
    """Return the beginning of a regular file, None where there is none."""
    try:
        handle = os.open(path, _OPEN)
    except (OSError, ValueError):
        return None
    try:
        return os.read(handle, _HEAD) if stat.S_ISREG(os.fstat(handle).st_mode) else None
    except OSError:
        return None
    finally:
        os.close(handle)


def _once(found: List[Dict[str, Any]]) -> List[Dict[str, Any]]:
    """Return each folder and distribution once, those that run first."""
    first: Dict[Tuple[str, str], Dict[str, Any]] = {}
    for one in sorted(found, key=lambda each: not each["processes"]):
        first.setdefault((os.path.realpath(one["site"]), one["distribution"]), one)
    return list(first.values())[:_FOUND]
